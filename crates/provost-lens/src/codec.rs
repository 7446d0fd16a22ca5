//! Encodes and decodes facts. Decoding must be fast: after one edit, the facts of all other files
//! are read.
//!
//! Numbers are little-endian and of fixed size; lists and texts are preceded by their length. Input
//! that does not decode to its last byte is rejected.

use std::borrow::Cow;

use crate::structure::{Confidence, Parse};

use crate::facts::{Block, ClassFact, Facts, FunctionFact, Hashes, ImportFact};

/// Bits of the flags of a function or a class.
const UNSOUND: u8 = 1;
const TEST: u8 = 2;
const DEFERRED: u8 = 1;

/// The least bytes of a function, a class and an import.
const FUNCTION: usize = 4 + 7 * 4 + 2 * 8 + 4 + 4 + 2;
const CLASS: usize = 4 + 3 * 4 + 4 + 1 + 4 + 2;
const IMPORT: usize = 4 + 1;

/// Encoding of confidences and parses by index; 0 is for none.
const SURE: [Confidence; 3] = [Confidence::Low, Confidence::Medium, Confidence::High];
const PARSES: [Parse; 6] = [
    Parse::Clean,
    Parse::Errors,
    Parse::TooHard,
    Parse::TooLarge,
    Parse::NotText,
    Parse::Unread,
];

/// Encodes `facts`; `None` if they are too large to be kept.
pub(crate) fn encode(facts: &Facts<'_>) -> Option<Vec<u8>> {
    let mut out = Out(Vec::with_capacity(1024));
    out.number(facts.lines);
    out.0.push(place(&PARSES, &facts.parse)?);
    out.length(facts.functions.len())?;
    for function in &facts.functions {
        out.function(function)?;
    }
    out.length(facts.classes.len())?;
    for class in &facts.classes {
        out.class(class)?;
    }
    out.length(facts.imports.len())?;
    for import in &facts.imports {
        out.text(&import.target)?;
        out.0.push(if import.deferred { DEFERRED } else { 0 });
    }
    for hashes in [&facts.references, &facts.own, &facts.mentions] {
        out.hashes(hashes)?;
    }
    Some(out.0)
}

pub(crate) fn decode(bytes: &[u8]) -> Option<Facts<'_>> {
    let mut input = In(bytes);
    let facts = Facts {
        lines: input.number()?,
        parse: *PARSES.get(usize::from(input.byte()?))?,
        functions: input.list(FUNCTION, In::function)?,
        classes: input.list(CLASS, In::class)?,
        imports: input.list(IMPORT, In::import)?,
        references: input.hashes()?,
        own: input.hashes()?,
        mentions: input.hashes()?,
    };
    input.0.is_empty().then_some(facts)
}

fn place<T: PartialEq>(all: &[T], one: &T) -> Option<u8> {
    let at = all.iter().position(|other| other == one)?;
    u8::try_from(at).ok()
}

fn flags(pairs: [(bool, u8); 2]) -> u8 {
    pairs
        .iter()
        .filter(|(is, _)| *is)
        .fold(0, |all, (_, bit)| all | bit)
}

struct Out(Vec<u8>);

impl Out {
    fn number(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    fn length(&mut self, length: usize) -> Option<()> {
        self.number(u32::try_from(length).ok()?);
        Some(())
    }

    fn text(&mut self, text: &str) -> Option<()> {
        self.length(text.len())?;
        self.0.extend(text.as_bytes());
        Some(())
    }

    fn hashes(&mut self, hashes: &Hashes<'_>) -> Option<()> {
        self.length(hashes.len())?;
        self.0.extend(hashes.0.as_flattened());
        Some(())
    }

    fn sure(&mut self, sure: Option<Confidence>) -> Option<()> {
        self.0.push(match sure {
            Some(sure) => 1 + place(&SURE, &sure)?,
            None => 0,
        });
        Some(())
    }

    fn function(&mut self, one: &FunctionFact<'_>) -> Option<()> {
        self.text(&one.name)?;
        for number in [
            one.line,
            one.end_line,
            one.statements,
            one.cyclomatic,
            one.cognitive,
            one.nesting,
            one.tokens,
        ] {
            self.number(number);
        }
        self.0.extend(one.shape.to_le_bytes());
        self.0.extend(one.text.to_le_bytes());
        self.hashes(&one.sketch)?;
        self.length(one.block.len())?;
        self.0.extend(one.block.0.as_flattened());
        self.sure(one.unused)?;
        self.0
            .push(flags([(one.unsound, UNSOUND), (one.test, TEST)]));
        Some(())
    }

    fn class(&mut self, one: &ClassFact<'_>) -> Option<()> {
        self.text(&one.name)?;
        for number in [one.line, one.end_line, one.methods] {
            self.number(number);
        }
        self.hashes(&one.uses)?;
        self.0.push(u8::from(one.cohesion.is_some()));
        self.number(one.cohesion.unwrap_or(0));
        self.sure(one.unused)?;
        self.0.push(flags([(false, 0), (one.test, TEST)]));
        Some(())
    }
}

/// The bytes are no valid facts.
struct NoFacts;

struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*chunk)
    }

    fn byte(&mut self) -> Option<u8> {
        self.chunk().map(|[byte]| byte)
    }

    fn number(&mut self) -> Option<u32> {
        self.chunk().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_le_bytes)
    }

    /// The length of a list whose elements have at least `each` bytes; the rest must be long
    /// enough.
    fn length(&mut self, each: usize) -> Option<usize> {
        let length = usize::try_from(self.number()?).ok()?;
        (length.checked_mul(each)? <= self.0.len()).then_some(length)
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<Cow<'a, str>> {
        let length = self.length(1)?;
        let text = std::str::from_utf8(self.bytes(length)?).ok()?;
        Some(Cow::Borrowed(text))
    }

    /// A list of elements of at least `each` bytes.
    fn list<T>(&mut self, each: usize, one: fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = self.length(each)?;
        let mut list = Vec::with_capacity(length);
        for _ in 0..length {
            list.push(one(self)?);
        }
        Some(list)
    }

    fn hashes(&mut self) -> Option<Hashes<'a>> {
        let length = self.length(4)?;
        let (chunks, _) = self.bytes(length * 4)?.as_chunks();
        Some(Hashes(Cow::Borrowed(chunks)))
    }

    /// A confidence or none; an error for anything else.
    fn sure(&mut self) -> Result<Option<Confidence>, NoFacts> {
        match self.byte().ok_or(NoFacts)? {
            0 => Ok(None),
            at => SURE
                .get(usize::from(at - 1))
                .copied()
                .map(Some)
                .ok_or(NoFacts),
        }
    }

    fn block(&mut self) -> Option<Block<'a>> {
        let length = self.length(16)?;
        let (chunks, _) = self.bytes(length * 16)?.as_chunks();
        Some(Block(Cow::Borrowed(chunks)))
    }

    fn function(&mut self) -> Option<FunctionFact<'a>> {
        let name = self.text()?;
        let mut numbers = [0; 7];
        for number in &mut numbers {
            *number = self.number()?;
        }
        let [
            line,
            end_line,
            statements,
            cyclomatic,
            cognitive,
            nesting,
            tokens,
        ] = numbers;
        let (shape, text, sketch) = (self.long()?, self.long()?, self.hashes()?);
        let (block, unused, flags) = (self.block()?, self.sure().ok()?, self.byte()?);
        Some(FunctionFact {
            name,
            line,
            end_line,
            statements,
            cyclomatic,
            cognitive,
            nesting,
            shape,
            text,
            tokens,
            sketch,
            block,
            unused,
            unsound: flags & UNSOUND != 0,
            test: flags & TEST != 0,
        })
    }

    fn class(&mut self) -> Option<ClassFact<'a>> {
        let name = self.text()?;
        let (line, end_line, methods) = (self.number()?, self.number()?, self.number()?);
        let uses = self.hashes()?;
        let (has, cohesion) = (self.byte()?, self.number()?);
        let (unused, flags) = (self.sure().ok()?, self.byte()?);
        Some(ClassFact {
            name,
            line,
            end_line,
            methods,
            uses,
            cohesion: (has != 0).then_some(cohesion),
            unused,
            test: flags & TEST != 0,
        })
    }

    fn import(&mut self) -> Option<ImportFact<'a>> {
        let target = self.text()?;
        let deferred = self.byte()? & DEFERRED != 0;
        Some(ImportFact { target, deferred })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::StatementFact;

    fn facts() -> Facts<'static> {
        let hashes = |list: &[u32]| list.iter().copied().collect::<Hashes<'_>>();
        let function = FunctionFact {
            name: "C.größe".into(),
            line: 1,
            end_line: 2,
            statements: 3,
            cyclomatic: 4,
            cognitive: 5,
            nesting: 6,
            shape: u64::MAX,
            text: 7,
            tokens: 8,
            sketch: hashes(&[9, u32::MAX]),
            block: [StatementFact(10, 11, 12)].into_iter().collect(),
            unused: Some(Confidence::High),
            unsound: true,
            test: false,
        };
        let class = ClassFact {
            name: "C".into(),
            line: 1,
            end_line: 16,
            methods: 17,
            uses: hashes(&[18]),
            cohesion: Some(0),
            unused: None,
            test: true,
        };
        let import = |deferred| ImportFact {
            target: ".a:b".into(),
            deferred,
        };
        Facts {
            lines: 19,
            parse: Parse::Errors,
            functions: vec![function.clone(), function],
            classes: vec![class],
            imports: vec![import(true), import(false)],
            references: hashes(&[20, 21]),
            own: hashes(&[]),
            mentions: hashes(&[22]),
        }
    }

    #[test]
    fn facts_read_back_as_they_were_written() {
        for (parse, sure) in PARSES.iter().zip(SURE.iter().cycle()) {
            let mut facts = facts();
            facts.parse = *parse;
            facts.functions[0].unused = Some(*sure);
            assert_eq!(decode(&encode(&facts).unwrap()), Some(facts));
        }
    }

    #[test]
    fn what_is_cut_or_longer_is_no_facts_and_no_length_is_believed() {
        let mut bytes = encode(&facts()).unwrap();
        for end in 0..bytes.len() {
            assert_eq!(decode(&bytes[..end]), None, "{end}");
        }
        bytes.push(0);
        assert_eq!(decode(&bytes), None);
        for at in 0..bytes.len() - 4 {
            let mut wrong = bytes.clone();
            wrong[at..at + 4].fill(0xff);
            // Whatever it decodes to, it does not allocate more memory than there are bytes.
            let _ = decode(&wrong);
        }
    }
}
