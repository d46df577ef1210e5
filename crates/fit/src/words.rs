//! Names as numbers: label keys and values, taints, resources, namespaces. Two names are the same
//! word exactly if they are the same symbol.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

/// Hashing without chance, so that equal inputs take equal paths.
pub(crate) type Hashing = BuildHasherDefault<DefaultHasher>;

/// Set in symbols that were made up and have no text of their own.
const FRESH: u32 = 1 << 31;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Symbol(u32);

#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    texts: Vec<Arc<str>>,
    symbols: HashMap<Arc<str>, Symbol, Hashing>,
}

// === impl Symbol ===

impl Symbol {
    /// A word that nobody has written: equal to no other but itself.
    pub(crate) fn fresh(number: u32) -> Self {
        Self(FRESH | number)
    }
}

// === impl Words ===

impl Words {
    pub(crate) fn intern(&mut self, text: &str) -> Symbol {
        if let Some(symbol) = self.symbols.get(text) {
            return *symbol;
        }
        let number = u32::try_from(self.texts.len()).expect("words fit into memory, numbers too");
        assert!(number < FRESH, "half of the numbers are for words that nobody has written");
        let text: Arc<str> = text.into();
        self.texts.push(Arc::clone(&text));
        self.symbols.insert(text, Symbol(number));
        Symbol(number)
    }

    pub(crate) fn text(&self, symbol: Symbol) -> Cow<'_, str> {
        match self.texts.get(symbol.0 as usize) {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(format!("new-{}", symbol.0 & !FRESH)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_one_symbol_and_fresh_ones_are_nobodys() {
        let mut words = Words::default();
        let zone = words.intern("zone");
        assert_eq!(words.intern("zone"), zone);
        assert_ne!(words.intern("new-0"), Symbol::fresh(0));
        assert_eq!(words.text(zone), "zone");
        assert_eq!(words.text(Symbol::fresh(7)), "new-7");
    }
}
