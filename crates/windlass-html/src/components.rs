//! What pages are made of: figures, facts, the heads of tables.

use maud::{Markup, html};

/// A number with its name, and where it leads.
pub fn figure(name: &str, value: &str, tone: &str, to: Option<&str>) -> Markup {
    let inside = html! { span.value { (value) } span.name { (name) } };
    html! {
        @match to {
            Some(to) => a class=(format!("figure {tone}")) href=(to) { (inside) },
            None => div class=(format!("figure {tone}")) { (inside) },
        }
    }
}

/// The heads of a table's columns; `#` stands before those of numbers.
pub fn heads(names: &[&str]) -> Markup {
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

/// Facts with their names.
pub fn facts(facts: &[(&str, Markup)]) -> Markup {
    html! {
        dl.facts {
            @for (name, fact) in facts { div { dt { (name) } dd { (fact) } } }
        }
    }
}

/// That there is nothing to see, and why that is well.
pub fn nothing(text: &str) -> Markup {
    html! { p.nothing { (text) } }
}
