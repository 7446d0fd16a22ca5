//! The one deserializer: every type is read from a parsed document by it.
//!
//! A visitor is asked only for the kind of value that its type wants. So an object is never read
//! from a list of its fields, as deserializers made by serde would permit, and the compiler makes
//! one copy of the code that reads a type, without the kinds that the type refuses.

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde_json::Number;

use super::Node;
use super::shape::Misshapen;

type Read<T> = Result<T, Misshapen>;

/// A value of a document, or the name of a field or variant.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'de> {
    Value(&'de Node<'de>),
    Name(&'de str),
}

impl<'de> Place<'de> {
    fn text(self) -> Option<&'de str> {
        match self {
            Self::Value(node) => node.as_str(),
            Self::Name(name) => Some(name),
        }
    }

    fn node(self) -> Option<&'de Node<'de>> {
        match self {
            Self::Value(node) => Some(node),
            Self::Name(_) => None,
        }
    }

    fn is_null(self) -> bool {
        matches!(self, Self::Value(Node::Null))
    }

    fn unfit(self, wanted: &dyn Expected) -> Misshapen {
        let found = match self {
            Self::Name(text) => Unexpected::Str(text),
            Self::Value(node) => match node {
                Node::Null => Unexpected::Unit,
                Node::Bool(flag) => Unexpected::Bool(*flag),
                Node::Number(number) => unexpected(number),
                Node::Text(text) => Unexpected::Str(text),
                Node::List(_) => Unexpected::Seq,
                Node::Object(_) => Unexpected::Map,
            },
        };
        Misshapen::invalid_type(found, wanted)
    }
}

fn unexpected(number: &Number) -> Unexpected<'static> {
    if let Some(number) = number.as_u64() {
        Unexpected::Unsigned(number)
    } else if let Some(number) = number.as_i64() {
        Unexpected::Signed(number)
    } else {
        Unexpected::Float(number.as_f64().unwrap_or_default())
    }
}

macro_rules! integers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
            if let Some(Node::Number(number)) = self.node() {
                if let Some(number) = number.as_u64() {
                    return visitor.visit_u64(number);
                }
                if let Some(number) = number.as_i64() {
                    return visitor.visit_i64(number);
                }
            }
            Err(self.unfit(&visitor))
        })*
    };
}

macro_rules! texts {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
            match self.text() {
                Some(text) => visitor.visit_str(text),
                None => Err(self.unfit(&visitor)),
            }
        })*
    };
}

macro_rules! floats {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
            match self.node() {
                Some(Node::Number(number)) => {
                    visitor.visit_f64(number.as_f64().unwrap_or_default())
                }
                _ => Err(self.unfit(&visitor)),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Place<'de> {
    type Error = Misshapen;

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }

    floats! { deserialize_f32 deserialize_f64 }

    texts! {
        deserialize_char deserialize_str deserialize_string deserialize_bytes
        deserialize_byte_buf deserialize_identifier
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        let node = match self {
            Self::Name(name) => return visitor.visit_str(name),
            Self::Value(node) => node,
        };
        match node {
            Node::Null => visitor.visit_unit(),
            Node::Bool(flag) => visitor.visit_bool(*flag),
            Node::Number(number) => match unexpected(number) {
                Unexpected::Unsigned(number) => visitor.visit_u64(number),
                Unexpected::Signed(number) => visitor.visit_i64(number),
                _ => visitor.visit_f64(number.as_f64().unwrap_or_default()),
            },
            Node::Text(text) => visitor.visit_str(text),
            Node::List(_) => self.deserialize_seq(visitor),
            Node::Object(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match self.node() {
            Some(Node::Bool(flag)) => visitor.visit_bool(*flag),
            _ => Err(self.unfit(&visitor)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        if self.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        if self.is_null() {
            visitor.visit_unit()
        } else {
            Err(self.unfit(&visitor))
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Read<V::Value> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Read<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        let Some(Node::List(items)) = self.node() else {
            return Err(self.unfit(&visitor));
        };
        let mut list = List { items, next: 0 };
        let value = visitor.visit_seq(&mut list)?;
        if list.next == items.len() {
            Ok(value)
        } else {
            let fewer = &"fewer elements in array";
            Err(Misshapen::invalid_length(items.len(), fewer))
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Read<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Read<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        let Some(Node::Object(fields)) = self.node() else {
            return Err(self.unfit(&visitor));
        };
        visitor.visit_map(Object {
            fields: fields.all(),
            value: None,
        })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        self.deserialize_map(visitor)
    }

    /// A variant is the text of its name, or an object whose only field has it.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        if let Some(name) = self.text() {
            return visitor.visit_enum(Variant {
                name,
                content: None,
            });
        }
        let Some(Node::Object(fields)) = self.node() else {
            return Err(self.unfit(&"string or map"));
        };
        let [(name, content)] = fields.all() else {
            let single = &"map with a single key";
            return Err(Misshapen::invalid_value(Unexpected::Map, single));
        };
        visitor.visit_enum(Variant {
            name,
            content: Some(content),
        })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        visitor.visit_unit()
    }
}

struct List<'de> {
    items: &'de [Node<'de>],
    next: usize,
}

impl<'de> SeqAccess<'de> for List<'de> {
    type Error = Misshapen;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Read<Option<T::Value>> {
        let at = self.next;
        let Some(item) = self.items.get(at) else {
            return Ok(None);
        };
        self.next += 1;
        match seed.deserialize(Place::Value(item)) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(error.in_item(at)),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.next)
    }
}

struct Object<'de> {
    fields: &'de [super::node::Field<'de>],
    /// The field whose name was read last.
    value: Option<(&'de str, &'de Node<'de>)>,
}

impl<'de> MapAccess<'de> for Object<'de> {
    type Error = Misshapen;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Read<Option<K::Value>> {
        let Some(((name, node), rest)) = self.fields.split_first() else {
            return Ok(None);
        };
        self.fields = rest;
        self.value = Some((name, node));
        match seed.deserialize(Place::Name(name)) {
            Ok(key) => Ok(Some(key)),
            Err(error) => Err(error.of_name(name)),
        }
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Read<T::Value> {
        let Some((name, node)) = self.value.take() else {
            return Err(Misshapen::custom("a value is read before its name"));
        };
        let value = seed.deserialize(Place::Value(node));
        value.map_err(|error| error.in_field(name))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.fields.len())
    }
}

struct Variant<'de> {
    name: &'de str,
    content: Option<&'de Node<'de>>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Misshapen;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Read<(V::Value, Self)> {
        let variant = seed.deserialize(Place::Name(self.name))?;
        Ok((variant, self))
    }
}

impl<'de> Variant<'de> {
    fn content(&self, wanted: &dyn Expected) -> Read<Place<'de>> {
        let content = self.content.map(Place::Value);
        content.ok_or_else(|| Misshapen::invalid_type(Unexpected::UnitVariant, wanted))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Misshapen;

    fn unit_variant(self) -> Read<()> {
        match self.content {
            None | Some(Node::Null) => Ok(()),
            Some(node) => Err(Place::Value(node).unfit(&"unit").in_field(self.name)),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Read<T::Value> {
        let content = self.content(&"newtype variant")?;
        let value = seed.deserialize(content);
        value.map_err(|error| error.in_field(self.name))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Read<V::Value> {
        let value = self.content(&"tuple variant")?.deserialize_seq(visitor);
        value.map_err(|error| error.in_field(self.name))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        let value = self.content(&"struct variant")?.deserialize_map(visitor);
        value.map_err(|error| error.in_field(self.name))
    }
}
