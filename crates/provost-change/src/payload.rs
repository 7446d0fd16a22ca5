//! Declares the payloads of tools: a field has its name, its type and its value in one place.

/// Declares a payload and its constructor `of`. A field below `optional` is left out if its value
/// is `None`.
macro_rules! payload {
    ($(#[$outer:meta])* $visible:vis struct $name:ident $(<$life:lifetime>)?
        ($($given:ident: $kind:ty),* $(,)?)
    {
        $($(#[$inner:meta])* $field:ident: $type:ty = $value:expr,)*
    } $(optional {
        $($(#[$rare:meta])* $absent:ident: $some:ty = $option:expr,)*
    })?) => {
        $(#[$outer])*
        #[derive(Debug, Clone, PartialEq, ::serde::Serialize)]
        $visible struct $name $(<$life>)? {
            $($(#[$inner])* pub $field: $type,)*
            $($(
                $(#[$rare])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $absent: Option<$some>,
            )*)?
        }

        impl $(<$life>)? $name $(<$life>)? {
            $visible fn of($($given: $kind),*) -> Self {
                Self {
                    $($field: $value,)*
                    $($($absent: $option,)*)?
                }
            }
        }
    };
}

pub(crate) use payload;
