//! Every error code and every kind of alert has a section that answers an operator's questions.

use windlass_core::AlertKind;
use windlass_core::problem::Code;

/// The headings of each section, in this order.
const ANSWERS: [&str; 5] = ["**Means.**", "**See.**", "**Do.**", "**Resolved.**", "**Prevent.**"];

#[test]
fn every_error_code_and_every_kind_of_alert_has_a_section() {
    let errors = include_str!("../../../../../docs/errors.md");
    let alerts = include_str!("../../../../../docs/operations.md");
    let codes = Code::ALL.iter().map(|code| (errors, format!("\n## {} ", code.as_str())));
    let kinds = AlertKind::ALL.iter().map(|kind| (alerts, format!("\n### `{}`\n", kind.as_str())));
    for (page, title) in codes.chain(kinds) {
        let (_, section) = page.split_once(&title).unwrap_or_else(|| panic!("no section{title}"));
        let section = &section[..section.find("\n## ").unwrap_or(section.len())];
        let section = &section[..section.find("\n### ").unwrap_or(section.len())];
        let places: Vec<_> = ANSWERS.iter().map(|answer| section.find(answer)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{title}: {places:?}");
    }
}
