//! Reads the fields of an object, and reports what is wrong with each.
//!
//! An absent or empty field is `MISSING_REQUIRED_INPUT`, another type or value is `SCHEMA_INVALID`.
//! A `null` is a value of another type.

use provost_core::code::Code;
use provost_core::json::{Fields, Node};

use super::finding::{Findings, Place};

/// How long a text may be, in characters.
#[derive(Debug, Clone, Copy)]
pub(super) enum Length {
    /// May be empty.
    Any,
    /// Not blank.
    Filled,
    /// Not blank, and not longer than this.
    UpTo(usize),
}

/// An object of a payload, and its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Object<'v, 'p> {
    map: &'v Fields<'v>,
    place: Place<'p>,
}

impl<'v, 'p> Object<'v, 'p> {
    pub(super) fn of(value: &'v Node<'v>, place: Place<'p>, found: &mut Findings) -> Option<Self> {
        let Node::Object(map) = value else {
            found.add(Code::SchemaInvalid, place, "is not an object");
            return None;
        };
        Some(Self { map, place })
    }

    pub(super) fn payload(value: &'v Node<'v>, found: &mut Findings) -> Option<Self> {
        Self::of(value, *Place::root(), found)
    }

    pub(super) fn place(&self) -> &Place<'p> {
        &self.place
    }

    pub(super) fn at<'a>(&'a self, key: &'a str) -> Place<'a> {
        self.place.key(key)
    }

    pub(super) fn optional(&self, key: &str) -> Option<&'v Node<'v>> {
        self.map.get(key)
    }

    /// The field `key`, which is required.
    pub(super) fn required(&self, key: &str, found: &mut Findings) -> Option<&'v Node<'v>> {
        let value = self.map.get(key);
        if value.is_none() {
            found.add(Code::MissingRequiredInput, self.at(key), "is missing");
        }
        value
    }

    pub(super) fn text(&self, key: &str, length: Length, found: &mut Findings) -> Option<&'v str> {
        let value = self.required(key, found)?;
        text(value, self.at(key), length, found)
    }

    pub(super) fn optional_text(&self, key: &str, found: &mut Findings) -> Option<&'v str> {
        let value = self.optional(key)?;
        text(value, self.at(key), Length::Any, found)
    }

    pub(super) fn list(&self, key: &str, found: &mut Findings) -> Option<&'v [Node<'v>]> {
        let value = self.required(key, found)?;
        list(value, self.at(key), found)
    }

    /// The list `key`; an absent one is empty.
    pub(super) fn optional_list(&self, key: &str, found: &mut Findings) -> Option<&'v [Node<'v>]> {
        match self.optional(key) {
            Some(value) => list(value, self.at(key), found),
            None => Some(&[]),
        }
    }

    /// The list `key` of texts, each of the given length.
    pub(super) fn texts(
        &self,
        key: &str,
        length: Length,
        found: &mut Findings,
    ) -> Option<Vec<&'v str>> {
        self.all(
            key,
            |item, place, found| text(item, place, length, found),
            found,
        )
    }

    /// The list `key`, each element read by `read`; `None` if one of them is invalid.
    pub(super) fn all<T>(
        &self,
        key: &str,
        read: impl Fn(&'v Node<'v>, Place<'_>, &mut Findings) -> Option<T>,
        found: &mut Findings,
    ) -> Option<Vec<T>> {
        all(self.list(key, found)?, self.at(key), read, found)
    }

    /// Like [`Object::all`]; an absent list is empty.
    pub(super) fn optional_all<T>(
        &self,
        key: &str,
        read: impl Fn(&'v Node<'v>, Place<'_>, &mut Findings) -> Option<T>,
        found: &mut Findings,
    ) -> Option<Vec<T>> {
        all(self.optional_list(key, found)?, self.at(key), read, found)
    }

    pub(super) fn flag(&self, key: &str, found: &mut Findings) -> Option<bool> {
        let value = self.required(key, found)?;
        flag(value, self.at(key), found)
    }

    pub(super) fn optional_flag(&self, key: &str, found: &mut Findings) -> Option<bool> {
        flag(self.optional(key)?, self.at(key), found)
    }

    /// The whole number `key`, which is at least `least`.
    pub(super) fn count(&self, key: &str, least: u64, found: &mut Findings) -> Option<u64> {
        let value = self.required(key, found)?;
        let number = value.as_u64().filter(|number| *number >= least);
        if number.is_none() {
            let problem = format!("is not a whole number of at least {least}");
            found.add(Code::SchemaInvalid, self.at(key), problem);
        }
        number
    }

    /// The field `key`, which must be a word that `parse` accepts.
    pub(super) fn word<T>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Option<T>,
        choices: &str,
        found: &mut Findings,
    ) -> Option<T> {
        let value = self.required(key, found)?;
        let word = value.as_str().and_then(parse);
        if word.is_none() {
            let problem = format!("is not one of {choices}");
            found.add(Code::SchemaInvalid, self.at(key), problem);
        }
        word
    }

    /// Refuses unknown fields, in strict mode.
    pub(super) fn close(&self, known: &[&str], found: &mut Findings) {
        if !found.is_strict() {
            return;
        }
        for (key, _) in self.map.iter() {
            if !key.starts_with("x_") && !known.contains(&key) {
                let problem = "is not a field of this contract";
                found.add(Code::SchemaInvalid, self.at(key), problem);
            }
        }
    }
}

pub(super) fn text<'v>(
    value: &'v Node<'v>,
    place: Place<'_>,
    length: Length,
    found: &mut Findings,
) -> Option<&'v str> {
    let Node::Text(text) = value else {
        found.add(Code::SchemaInvalid, place, "is not text");
        return None;
    };
    let most = match length {
        Length::Any => return Some(text),
        Length::Filled => usize::MAX,
        Length::UpTo(most) => most,
    };
    if text.trim().is_empty() {
        found.add(Code::MissingRequiredInput, place, "is blank");
        return None;
    }
    // The characters are only counted if the bytes do not decide.
    if text.len() > most && text.chars().count() > most {
        let problem = format!("is longer than {most} characters");
        found.add(Code::SchemaInvalid, place, problem);
        return None;
    }
    Some(text)
}

pub(super) fn list<'v>(
    value: &'v Node<'v>,
    place: Place<'_>,
    found: &mut Findings,
) -> Option<&'v [Node<'v>]> {
    let Node::List(items) = value else {
        found.add(Code::SchemaInvalid, place, "is not a list");
        return None;
    };
    Some(items)
}

fn flag(value: &Node<'_>, place: Place<'_>, found: &mut Findings) -> Option<bool> {
    let flag = value.as_bool();
    if flag.is_none() {
        found.add(Code::SchemaInvalid, place, "is not true or false");
    }
    flag
}

/// What `read` reads from each of `items`; `None` if one of them is invalid.
pub(super) fn all<'v, T>(
    items: &'v [Node<'v>],
    place: Place<'_>,
    read: impl Fn(&'v Node<'v>, Place<'_>, &mut Findings) -> Option<T>,
    found: &mut Findings,
) -> Option<Vec<T>> {
    let before = found.count();
    let mut list = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        list.extend(read(item, place.index(at), found));
    }
    (found.count() == before).then_some(list)
}
