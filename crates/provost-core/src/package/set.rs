//! Sets that refuse duplicates.
//!
//! Other readers keep one of two equal entries, and which one they keep is undefined.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Id;

/// A list without duplicates; serialised in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Set<T: Ord>(BTreeSet<T>);

impl<T: Ord> Default for Set<T> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<T: Ord> FromIterator<T> for Set<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl<T: Ord> Set<T> {
    /// The items, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    pub fn contains(&self, item: &T) -> bool {
        self.0.contains(item)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de, T: Deserialize<'de> + Ord + Debug> Deserialize<'de> for Set<T> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let mut set = BTreeSet::new();
        for item in Vec::<T>::deserialize(reader)? {
            if let Some(item) = set.replace(item) {
                return Err(D::Error::custom(format!("{item:?} is there twice")));
            }
        }
        Ok(Self(set))
    }
}

/// An item with an id.
pub trait Key {
    fn key(&self) -> &Id;
}

/// Items by their ids, without duplicates; serialised as a list in the order of the ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyed<T>(BTreeMap<Id, T>);

impl<T> Default for Keyed<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Key> FromIterator<T> for Keyed<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let entry = |item: T| (item.key().clone(), item);
        Self(items.into_iter().map(entry).collect())
    }
}

impl<T> Keyed<T> {
    /// The items, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.values()
    }

    pub fn get(&self, id: &Id) -> Option<&T> {
        self.0.get(id)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Serialize> Serialize for Keyed<T> {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.collect_seq(self.0.values())
    }
}

impl<'de, T: Deserialize<'de> + Key> Deserialize<'de> for Keyed<T> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let mut things = BTreeMap::new();
        for thing in Vec::<T>::deserialize(reader)? {
            if let Some(twin) = things.insert(thing.key().clone(), thing) {
                return Err(D::Error::custom(format!("`{}` is there twice", twin.key())));
            }
        }
        Ok(Self(things))
    }
}
