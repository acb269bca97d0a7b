//! The dialect that DataFusion has by default, with an end to what the parser may try.
//!
//! The parser goes back and tries another reading when one fails: `CASE` is a word that begins an expression,
//! or else the name of a column. A mistake inside of several such words, one in the other, is met once for
//! each way to read them all, and time doubles with each word. So the attempts are counted, and there are
//! only so many for a statement.

use std::any::TypeId;
use std::cell::Cell;

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};

/// `GenericDialect`, but for two things: it gives up after a number of attempts, and a comment that begins
/// with `/*!` is a comment like any other, not SQL.
#[derive(Debug)]
pub(super) struct Bounded {
    attempts: Cell<usize>,
}

impl Bounded {
    /// A dialect for parsing as many tokens, once.
    pub(super) fn new(tokens: usize) -> Self {
        // A statement without mistakes takes about one attempt for each token.
        Self { attempts: Cell::new(10_000 + 20 * tokens) }
    }
}

const GENERIC: GenericDialect = GenericDialect {};

/// Methods that answer as `GenericDialect` does.
macro_rules! as_generic {
    ($($method:ident($($argument:ident: $kind:ty)?)),* $(,)?) => {
        $(fn $method(&self $(, $argument: $kind)?) -> bool { GENERIC.$method($($argument)?) })*
    };
}

impl Dialect for Bounded {
    /// The parser asks which dialect it has, and is told `GenericDialect`.
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    /// Called at the beginning of every attempt at an expression.
    fn parse_prefix(&self, _: &mut Parser) -> Option<Result<Expr, ParserError>> {
        match self.attempts.get().checked_sub(1) {
            Some(left) => {
                self.attempts.set(left);
                None
            }
            None => Some(Err(ParserError::RecursionLimitExceeded)),
        }
    }

    fn supports_multiline_comment_hints(&self) -> bool {
        false
    }

    // Everything else that answers yes or no. Methods without an answer are the trait's own for both
    // dialects.
    as_generic! {
        is_delimited_identifier_start(c: char), is_identifier_start(c: char), is_identifier_part(c: char),
        is_nested_delimited_identifier_start(c: char), is_custom_operator_part(c: char),
        allow_extract_custom(), allow_extract_single_quotes(), convert_type_before_value(),
        describe_requires_table_keyword(), ignores_wildcard_escapes(), require_interval_qualifier(),
        requires_single_line_comment_whitespace(), support_map_literal_syntax(),
        supports_alter_column_type_using(), supports_array_join_syntax(),
        supports_array_typedef_with_brackets(), supports_array_typedef_without_element_type(),
        supports_asc_desc_in_column_definition(), supports_bang_not_operator(), supports_binary_kw_as_cast(),
        supports_bitwise_shift_operators(), supports_boolean_literals(),
        supports_column_definition_trailing_commas(), supports_comma_separated_drop_column_list(),
        supports_comma_separated_set_assignments(), supports_comma_separated_trim(), supports_comment_on(),
        supports_comment_optimizer_hint(), supports_connect_by(), supports_constraint_keyword_without_name(),
        supports_create_index_with_clause(), supports_create_table_like_parenthesized(),
        supports_create_table_multi_schema_info_sources(), supports_create_table_select(),
        supports_create_table_using(), supports_create_view_comment_syntax(),
        supports_cross_join_constraint(), supports_cte_without_as(), supports_data_type_signed_suffix(),
        supports_detach(), supports_dictionary_syntax(), supports_dollar_as_money_prefix(),
        supports_dollar_placeholder(), supports_double_ampersand_operator(), supports_empty_projections(),
        supports_end_transaction_modifier(), supports_eq_alias_assignment(), supports_execute_immediate(),
        supports_explain_with_utility_options(), supports_extract_comma_syntax(),
        supports_factorial_operator(), supports_filter_during_aggregation(), supports_from_first_insert(),
        supports_from_first_select(), supports_from_trailing_commas(), supports_geometric_types(),
        supports_group_by_expr(), supports_group_by_with_modifier(), supports_in_empty_list(),
        supports_insert_format(), supports_insert_set(), supports_insert_table_alias(),
        supports_insert_table_function(), supports_insert_table_query(), supports_install(),
        supports_interpolate(), supports_interval_options(), supports_key_column_option(),
        supports_lambda_functions(), supports_left_associative_joins_without_parens(), supports_limit_by(),
        supports_limit_comma(), supports_listen_notify(), supports_load_data(), supports_load_extension(),
        supports_long_type_as_bigint(), supports_map_literal_with_angle_brackets(), supports_match_against(),
        supports_match_recognize(), supports_named_fn_args_with_assignment_operator(),
        supports_named_fn_args_with_colon_operator(), supports_named_fn_args_with_eq_operator(),
        supports_named_fn_args_with_expr_name(), supports_named_fn_args_with_rarrow_operator(),
        supports_nested_comments(), supports_notnull_operator(), supports_numeric_literal_underscores(),
        supports_numeric_prefix(), supports_object_name_double_dot_notation(), supports_optimize_table(),
        supports_order_by_all(), supports_outer_join_operator(), supports_parens_around_table_factor(),
        supports_parenthesized_set_variables(), supports_partiql(), supports_partition_by_after_order_by(),
        supports_pipe_operator(), supports_prewhere(), supports_projection_trailing_commas(),
        supports_quote_delimited_string(), supports_select_exclude(), supports_select_expr_star(),
        supports_select_format(), supports_select_item_multi_column_alias(), supports_select_modifiers(),
        supports_select_wildcard_except(), supports_select_wildcard_exclude(),
        supports_select_wildcard_ilike(), supports_select_wildcard_rename(),
        supports_select_wildcard_replace(), supports_select_wildcard_with_alias(),
        supports_semantic_view_table_factor(), supports_set_names(), supports_set_stmt_without_operator(),
        supports_settings(), supports_show_like_before_in(), supports_space_separated_column_options(),
        supports_start_transaction_modifier(), supports_string_escape_constant(),
        supports_string_literal_backslash_escape(), supports_string_literal_concatenation(),
        supports_string_literal_concatenation_with_newline(), supports_struct_literal(),
        supports_subquery_as_function_arg(), supports_table_hints(), supports_table_sample_before_alias(),
        supports_table_versioning(), supports_top_before_distinct(), supports_trailing_commas(),
        supports_triple_quoted_string(), supports_try_convert(), supports_unicode_string_literal(),
        supports_update_order_by(), supports_user_host_grantee(), supports_values_as_table_factor(),
        supports_window_clause_named_window_reference(), supports_window_function_null_treatment_arg(),
        supports_with_fill(), supports_within_after_array_aggregation(), supports_xml_expressions(),
    }
}
