//! What we are given must be free to pass on: the licence of every package in the lock file.

use std::iter::Peekable;
use std::vec::IntoIter;

use super::Finding;
use super::graph::Package;

/// Licences under which a package may be used and passed on in an Apache-2.0 program. (MPL-2.0 binds only the
/// files that are under it.)
const PERMITTED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "OpenSSL",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
    "bzip2-1.0.6",
];

/// Exceptions give more rights, never fewer; these are the ones that we have read.
const EXCEPTIONS: &[&str] = &["LLVM-exception"];

pub(super) fn check<'a>(packages: impl Iterator<Item = &'a Package>) -> Vec<Finding> {
    packages
        .filter_map(|package| match package.license.as_deref() {
            None => Some(Finding::violation(package, "declares no licence")),
            Some(expression) if is_permitted(expression) => None,
            Some(expression) => Some(Finding::violation(
                package,
                format_args!("the licence is not on the list of permitted ones: {expression}"),
            )),
        })
        .collect()
}

/// Whether an SPDX expression leaves a choice that is permitted. One that is not understood is not.
fn is_permitted(expression: &str) -> bool {
    let mut tokens = Tokens::new(expression);
    tokens.any_of() == Some(true) && tokens.0.next().is_none()
}

/// A parser by recursive descent; `None` is a mistake in the expression.
struct Tokens(Peekable<IntoIter<String>>);

impl Tokens {
    fn new(expression: &str) -> Self {
        let spaced = expression
            .replace('/', " OR ") // The notation of old manifests.
            .replace('(', " ( ")
            .replace(')', " ) ");
        let words: Vec<String> = spaced.split_whitespace().map(str::to_owned).collect();
        Self(words.into_iter().peekable())
    }

    fn take(&mut self, word: &str) -> bool {
        self.0.next_if(|next| next == word).is_some()
    }

    /// `all_of (OR all_of)*`
    fn any_of(&mut self) -> Option<bool> {
        let mut permitted = self.all_of()?;
        while self.take("OR") {
            permitted |= self.all_of()?;
        }
        Some(permitted)
    }

    /// `term (AND term)*`
    fn all_of(&mut self) -> Option<bool> {
        let mut permitted = self.term()?;
        while self.take("AND") {
            permitted &= self.term()?;
        }
        Some(permitted)
    }

    /// `(any_of)`, or a licence with or without an exception.
    fn term(&mut self) -> Option<bool> {
        if self.take("(") {
            let permitted = self.any_of()?;
            return self.take(")").then_some(permitted);
        }
        let licence = self.0.next()?;
        let mut permitted = PERMITTED.contains(&licence.as_str());
        if self.take("WITH") {
            permitted &= EXCEPTIONS.contains(&self.0.next()?.as_str());
        }
        Some(permitted)
    }
}

#[cfg(test)]
mod tests {
    use super::super::texts;
    use super::*;

    #[test]
    fn expressions_are_read_as_spdx_means_them() {
        let cases = [
            ("MIT", true),
            ("MIT/Apache-2.0", true),
            ("Apache-2.0 / MIT", true),
            ("MIT OR Apache-2.0 OR LGPL-2.1-or-later", true),
            ("ISC AND (Apache-2.0 OR GPL-3.0)", true),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("GPL-3.0", false),
            ("MIT AND GPL-3.0", false),
            ("GPL-3.0 OR MIT AND AGPL-3.0", false),
            ("GPL-3.0 WITH LLVM-exception", false),
            ("Apache-2.0 WITH Commons-Clause", false),
        ];
        for (expression, expected) in cases {
            assert_eq!(is_permitted(expression), expected, "{expression}");
        }
    }

    #[test]
    fn an_expression_that_makes_no_sense_is_not_permitted() {
        for expression in ["", "MIT OR", "(MIT", "MIT Apache-2.0", "MIT)", "Apache-2.0 WITH"] {
            assert!(!is_permitted(expression), "{expression}");
        }
    }

    #[test]
    fn packages_without_a_good_licence_are_listed() {
        let package = |name: &str, license: Option<&str>| Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
        };
        let packages =
            [package("good", Some("MIT")), package("greedy", Some("AGPL-3.0")), package("silent", None)];
        assert_eq!(
            texts(check(packages.iter())),
            [
                "violation  greedy 1.0.0: the licence is not on the list of permitted ones: AGPL-3.0",
                "violation  silent 1.0.0: declares no licence",
            ]
        );
    }
}
