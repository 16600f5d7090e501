//! Elements of a page: figures, lists of facts, table heads, empty states.

use maud::{Markup, html};

/// A figure with more characters than this is shown smaller.
const MAX_LARGE_CHARS: usize = 11;

/// A large number with its name and an optional link. `tone` is the class of its colour.
pub fn figure(name: &str, value: &str, tone: &str, link: Option<&str>) -> Markup {
    // A number of many digits is smaller, so that it fits a narrow window in one line.
    let is_long = value.chars().count() > MAX_LARGE_CHARS;
    let content = html! { span.value.long[is_long] { (value) } span.name { (name) } };
    html! {
        @match link {
            Some(link) => a class=(format!("figure {tone}")) href=(link) { (content) },
            None => div class=(format!("figure {tone}")) { (content) },
        }
    }
}

/// The head of a table. The prefix `#` marks numeric columns, which are aligned to the right.
pub fn table_head(names: &[&str]) -> Markup {
    html! {
        thead {
            tr {
                @for name in names {
                    @match name.strip_prefix('#') {
                        Some(name) => th.number { (name) },
                        None => th { (name) },
                    }
                }
            }
        }
    }
}

/// A list of names and values.
pub fn facts(facts: &[(&str, Markup)]) -> Markup {
    html! {
        dl.facts {
            @for (name, fact) in facts { div { dt { (name) } dd { (fact) } } }
        }
    }
}

/// The text shown instead of an empty list.
pub fn empty_state(text: &str) -> Markup {
    html! { p.empty { (text) } }
}
