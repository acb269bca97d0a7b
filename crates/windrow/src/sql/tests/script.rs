//! A script into statements: where one ends, where it stands, and what a mistake leaves.

use expect_test::expect;

use super::{error, lines};
use crate::sql::{SqlError, statements};

#[test]
fn a_semicolon_between_statements_divides_them_and_no_other() {
    let script = r#"
        SELECT ';' AS "a;b"; -- no; not here
        SELECT 1 /* nor ; here /* nor; here */ ; */ + 1;
        SELECT $$ dollar; quotes $$, $tag$ ; $$ ; $tag$, E'it\'s; fine', 'it''s; fine';
        SELECT `back;tick`
    "#;
    expect![[r#"
        2: SELECT ';' AS "a;b"
        3: SELECT 1 /* nor ; here /* nor; here */ ; */ + 1
        4: SELECT $$ dollar; quotes $$, $tag$ ; $$ ; $tag$, E'it\'s; fine', 'it''s; fine'
        5: SELECT `back;tick`
    "#]]
    .assert_eq(&lines(script));
}

#[test]
fn empty_statements_and_lonely_comments_are_skipped() {
    for empty in
        ["", " \n\t", ";", ";;\n;", "-- a comment", "/* a */ ; -- b\n;", "\u{feff}", "/*! SELECT 1 */"]
    {
        assert_eq!(lines(empty), "", "{empty:?}");
    }
    expect![[r#"
        1: SELECT 1
        3: SELECT 2
    "#]]
    .assert_eq(&lines(";;SELECT 1;;\n-- between\n;SELECT 2;-- after\n"));
}

#[test]
fn a_statement_stands_where_its_first_word_does() {
    let script = "-- a comment\n\n/* another\n one */ SHOW TABLES\n  ; SHOW\nFLOWS;\n\nSHOW TABLES";
    expect![[r#"
        4: SHOW TABLES
        5: SHOW
        FLOWS
        8: SHOW TABLES
    "#]]
    .assert_eq(&lines(script));
}

#[test]
fn a_byte_order_mark_and_line_ends_of_any_kind_do_not_matter() {
    let script = "\u{feff}SHOW TABLES;\r\n-- comment\r\nSHOW\r\n  FLOWS;\r\nSELEC 1";
    let all: Vec<_> = statements(script).collect();
    assert_eq!((all[0].as_ref().unwrap().line, all[0].as_ref().unwrap().text.as_str()), (1, "SHOW TABLES"));
    assert_eq!(
        (all[1].as_ref().unwrap().line, all[1].as_ref().unwrap().text.as_str()),
        (3, "SHOW\r\n  FLOWS")
    );
    let place = all[2].as_ref().unwrap_err().place();
    assert_eq!((place.line, place.column), (5, 1));
}

#[test]
fn columns_are_characters_whatever_their_width() {
    let script = "SELECT 'größe 🌾 日本' AS \"höhe\"; SHOW FLOWS LIKE 'ü';SHOW TABLES ü";
    expect![[r#"
        1: SELECT 'größe 🌾 日本' AS "höhe"
        1: SHOW FLOWS LIKE 'ü'
        ! syntax: line 1, column 64: expected the end of the statement, found `ü`; begins on line 1
    "#]]
    .assert_eq(&lines(script));
}

#[test]
fn a_mistake_is_met_when_its_statement_is_reached_and_the_rest_can_still_be_parsed() {
    let mut script = statements("SHOW TABLES; SELECT a FROM t WHERE; SHOW FLOWS");
    assert!(script.next().unwrap().is_ok());
    assert!(matches!(script.next(), Some(Err(SqlError::Syntax { .. }))));
    assert_eq!(script.next().unwrap().unwrap().text, "SHOW FLOWS");
    assert!(script.next().is_none());
}

#[test]
fn what_cannot_be_read_ends_the_script_after_the_statements_before_it() {
    let unreadable = [
        "SHOW TABLES;\nSELECT 'not closed;\nSHOW FLOWS;",
        "SHOW TABLES;\nSELECT 1, \"not closed;\nSHOW FLOWS;",
        "SHOW TABLES;\n  /* not /* closed */;\nSHOW FLOWS;",
        "SHOW TABLES;\nSELECT\n  $$ not closed;",
        "SHOW TABLES; SELECT E'not closed",
        "SHOW TABLES; SELECT U&'\\not hexadecimal'",
        "'",
    ];
    let table: String = unreadable.iter().map(|text| format!("{}\n", lines(text))).collect();
    expect![[r#"
        1: SHOW TABLES
        ! unreadable: line 2, column 8: a string begins here and is not closed; begins on line 2

        1: SHOW TABLES
        ! unreadable: line 2, column 11: a quoted name begins here and is not closed; begins on line 2

        1: SHOW TABLES
        ! unreadable: line 2, column 3: a comment begins here and is not closed; begins on line 2

        1: SHOW TABLES
        ! unreadable: line 3, column 3: a string begins here and is not closed; begins on line 2

        1: SHOW TABLES
        ! unreadable: line 1, column 21: a string begins here and is not closed; begins on line 1

        1: SHOW TABLES
        ! unreadable: line 1, column 21: this cannot be read: Invalid hex digit in escaped unicode string: n; begins on line 1

        ! unreadable: line 1, column 1: a string begins here and is not closed; begins on line 1

    "#]].assert_eq(&table);
}

#[test]
fn the_place_of_an_error_has_the_statement_with_it() {
    let error = error("-- a comment\nSELECT a,\n  b c d\nFROM t -- end\n;");
    let place = error.place();
    assert_eq!((place.line, place.column, place.statement_line), (3, 7, 2));
    assert_eq!(place.statement, "SELECT a,\n  b c d\nFROM t");
    assert_eq!(error.to_string(), "line 3, column 7: expected the end of the statement, found `d`");

    let unreadable = statements("SHOW TABLES;\nSELECT 1,\n 'open\n SELECT 2").nth(1).unwrap().unwrap_err();
    assert_eq!(unreadable.place().statement, "SELECT 1,\n 'open");
    assert_eq!((unreadable.place().line, unreadable.place().column), (3, 2));
}

#[test]
fn a_comment_in_the_form_of_a_hint_is_a_comment() {
    expect![[r#"
        1: SELECT 1 /*! ; */ + 1
    "#]]
    .assert_eq(&lines("/*!40101 SET NAMES utf8 */; SELECT 1 /*! ; */ + 1 /*! x */"));
}
