//! One table for an enum and the words that payloads and messages have for its values.

/// Declares an enum whose values have one word each, for JSON, messages and the command line alike.
///
/// It gets `ALL`, `name()`, `parse()`, `Display` and `Serialize`; other traits are derived as usual.
/// The crate that declares one needs `serde`.
#[macro_export]
macro_rules! words {
    ($(#[$outer:meta])* $visible:vis enum $name:ident {
        $($(#[$inner:meta])* $variant:ident = $word:literal,)+
    }) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, ::serde::Serialize)]
        $(#[$outer])*
        $visible enum $name {
            $($(#[$inner])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every value, in the order of the declaration.
            $visible const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Its word.
            $visible const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The value of this word.
            $visible fn parse(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.name() == word)
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter.write_str(self.name())
            }
        }
    };
}

#[cfg(test)]
mod tests {
    words! {
        #[derive(Default, serde::Deserialize)]
        pub(super) enum Colour {
            #[default]
            Red = "red",
            /// A word need not be the name of the value.
            LightBlue = "blue_light",
        }
    }

    #[test]
    fn a_value_has_one_word_everywhere() {
        assert_eq!(Colour::ALL, [Colour::Red, Colour::LightBlue]);
        for colour in Colour::ALL {
            assert_eq!(Colour::parse(colour.name()), Some(colour));
            assert_eq!(colour.to_string(), colour.name());
            let json = serde_json::to_value(colour).unwrap();
            assert_eq!(json, colour.name());
            assert_eq!(crate::json::from_value::<Colour>(json).unwrap(), colour);
        }
        assert_eq!(Colour::parse("LightBlue"), None);
        assert_eq!(Colour::default(), Colour::Red);
    }
}
