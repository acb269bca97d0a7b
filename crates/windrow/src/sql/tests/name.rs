//! Names and quotes.

use datafusion::common::TableReference;

use super::parse;
use crate::sql::{Statement, TableName, quote_name};

fn name(text: &str) -> TableName {
    match parse(&format!("DESCRIBE {text}")) {
        Statement::Describe { name } => name,
        other => panic!("{text} is {other:?}"),
    }
}

#[test]
fn unquoted_parts_are_folded_and_quoted_ones_are_not() {
    let cases = [
        ("T", "t"),
        ("Schema.Table1", "schema.table1"),
        ("A.B.C", "a.b.c"),
        ("\"T\"", "\"T\""),
        ("\"t\"", "t"),
        ("`t`", "t"),
        ("\"a.b\".\"c\"\"d\"", "\"a.b\".\"c\"\"d\""),
        ("a . b", "a.b"),
        ("\"select\"", "\"select\""),
        ("open", "\"open\""),
        ("Größe", "\"größe\""),
        ("ÄB", "\"Äb\""),
        ("_1", "_1"),
    ];
    for (text, shown) in cases {
        let name = name(text);
        assert_eq!(name.to_string(), shown, "{text}");
        assert_eq!(super::name::name(shown), name, "{text}");
    }
}

#[test]
fn a_name_is_the_reference_that_datafusion_reads() {
    for text in ["T", "s.T", "c.s.T", "\"T\"", "\"a.b\".\"c\"\"d\""] {
        let name = name(text);
        assert_eq!(TableReference::from(&name), TableReference::from(text), "{text}");
        assert_eq!(TableReference::from(name.clone()), TableReference::from(name.to_string()), "{text}");
    }
}

#[test]
fn plain_names_need_no_quotes_and_others_get_them() {
    for plain in ["a", "a1", "_", "time", "value", "host", "flow", "sink"] {
        assert_eq!(quote_name(plain), plain);
    }
    for other in
        ["A", "1a", "", "a b", "a-b", "ä", "a\"b", "select", "from", "offset", "end", "primary", "null"]
    {
        assert_eq!(quote_name(other), format!("\"{}\"", other.replace('"', "\"\"")));
    }
}
