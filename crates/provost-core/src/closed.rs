//! A macro for the objects of formats, so that all of them are parsed the same way.

/// Declares an object of a format. It is closed, so an unknown field is refused. Fields `name?: T`
/// are present or left out, and never `null`.
///
/// Such a field is an `Option<T>` of the struct. All other fields are as written.
macro_rules! closed {
    ($(#[$outer:meta])* pub struct $name:ident { $($body:tt)* }) => {
        $crate::closed::closed!(@ [$(#[$outer])*] $name [] $($body)*);
    };
    (@ [$($outer:tt)*] $name:ident [$($done:tt)*]) => {
        $($outer)*
        #[serde(deny_unknown_fields)]
        pub struct $name { $($done)* }
    };
    (@ [$($outer:tt)*] $name:ident [$($done:tt)*]
        $(#[$inner:meta])* pub $field:ident?: $type:ty, $($rest:tt)*
    ) => {
        $crate::closed::closed!(@ [$($outer)*] $name [
            $($done)*
            $(#[$inner])*
            #[serde(
                default,
                deserialize_with = "crate::closed::present",
                skip_serializing_if = "Option::is_none"
            )]
            pub $field: Option<$type>,
        ] $($rest)*);
    };
    (@ [$($outer:tt)*] $name:ident [$($done:tt)*]
        $(#[$inner:meta])* pub $field:ident: $type:ty, $($rest:tt)*
    ) => {
        $crate::closed::closed!(@ [$($outer)*] $name [
            $($done)*
            $(#[$inner])*
            pub $field: $type,
        ] $($rest)*);
    };
}

pub(crate) use closed;
use serde::{Deserialize, Deserializer};

/// An optional field that is present: `null` is not a way to leave it out.
pub(crate) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    reader: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(reader).map(Some)
}
