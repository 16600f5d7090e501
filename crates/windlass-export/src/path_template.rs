//! Fills in the placeholders of destination URLs, with values that cannot leave the destination.

use chrono::NaiveDate;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

use crate::{Error, Result};

/// The values of placeholders.
#[derive(Clone, Copy, Debug)]
pub struct TemplateVars<'a> {
    /// `{job_id}`.
    pub job_id: &'a str,
    /// `{job_type}`.
    pub job_type: &'a str,
    /// `{date}`.
    pub date: NaiveDate,
    /// Any other name: the request's params.
    pub params: &'a Map<String, Json>,
    /// `{claim:name}`: the submitter's claims.
    pub claims: &'a BTreeMap<String, Vec<String>>,
}

/// Fills in `{job_id}`, `{job_type}`, `{date}` and the names of params. Refuses a value that is empty or has `/`, `\`, `..`
/// or a control character, since it could leave the destination.
pub fn fill_template(template: &str, vars: TemplateVars<'_>) -> Result<String> {
    let mut filled = String::with_capacity(template.len() + 40);
    for piece in pieces(template)? {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Name(name) => filled.push_str(&value_of(template, name, vars)?),
        }
    }
    // Two values may be harmless alone but not next to each other. The template itself is trusted.
    let dots = |path: &str| path.split('/').filter(|part| [".", ".."].contains(part)).count();
    if dots(&filled) > dots(template) {
        let what = format!("`{template}` becomes `{filled}`, which leaves its destination");
        return Err(Error::Invalid(what));
    }
    Ok(filled)
}

/// The names of the placeholders in a template, for checks before there is a request.
pub fn placeholders(template: &str) -> Result<Vec<&str>> {
    let names = pieces(template)?.into_iter().filter_map(|piece| match piece {
        Piece::Name(name) => Some(name),
        Piece::Text(_) => None,
    });
    Ok(names.collect())
}

enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
}

fn pieces(template: &str) -> Result<Vec<Piece<'_>>> {
    let invalid = |what: &str| Error::Invalid(format!("`{template}`: {what}"));
    let (mut pieces, mut rest) = (Vec::new(), template);
    while let Some(start) = rest.find(['{', '}']) {
        if rest[start..].starts_with('}') {
            return Err(invalid("a `}` has no `{`"));
        }
        let end = rest[start..].find('}').ok_or_else(|| invalid("a `{` has no `}`"))? + start;
        let name = &rest[start + 1..end];
        if name.is_empty() || name.contains('{') {
            return Err(invalid("a placeholder must be a name in braces, such as `{job_id}`"));
        }
        pieces.extend([Piece::Text(&rest[..start]), Piece::Name(name)]);
        rest = &rest[end + 1..];
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

fn value_of(template: &str, name: &str, vars: TemplateVars<'_>) -> Result<String> {
    let value = match name {
        "job_id" => vars.job_id.to_owned(),
        "job_type" => vars.job_type.to_owned(),
        "date" => vars.date.to_string(),
        _ if name.starts_with("claim:") => claim(template, &name["claim:".len()..], vars)?,
        _ => match vars.params.get(name) {
            Some(Json::String(text)) => text.clone(),
            Some(single @ (Json::Number(_) | Json::Bool(_))) => single.to_string(),
            Some(other) => {
                let what =
                    format!("`{template}`: the param `{name}` is {other}; must be one value");
                return Err(Error::Invalid(what));
            }
            None => return Err(Error::Invalid(unknown(template, name, vars))),
        },
    };
    let leaves_destination = value.contains(['/', '\\'])
        || value.contains("..")
        || value.chars().any(char::is_control)
        || value.trim().is_empty();
    if leaves_destination {
        let why = "it must not be empty or contain `/`, `\\`, `..` or control characters";
        return Err(Error::Invalid(format!("`{template}`: `{name}` is {value:?}: {why}")));
    }
    Ok(value)
}

/// The one value of a claim. An unrestricted claim is `*`, which no token can contain, so its files never collide with
/// those of a restricted submitter.
fn claim(template: &str, name: &str, vars: TemplateVars<'_>) -> Result<String> {
    match vars.claims.get(name).map(Vec::as_slice) {
        Some([value]) => Ok(value.clone()),
        Some([]) | None => {
            Err(Error::Invalid(format!("`{template}`: the submitter has no claim `{name}`")))
        }
        Some(several) => {
            let found = several.len();
            Err(Error::Invalid(format!(
                "`{template}`: the claim `{name}` has {found} values, but a path needs one; submit \
                 a job for each"
            )))
        }
    }
}

fn unknown(template: &str, name: &str, vars: TemplateVars<'_>) -> String {
    let params: String = vars.params.keys().map(|param| format!(", `{{{param}}}`")).collect();
    format!(
        "`{template}`: unknown placeholder `{{{name}}}`; known are `{{job_id}}`, `{{job_type}}`, \
         `{{date}}`{params}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn filled(template: &str, params: Json) -> Result<String> {
        let params = params.as_object().unwrap().clone();
        let date = NaiveDate::from_ymd_opt(2025, 1, 31).unwrap();
        let one = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
        let claims = [
            ("county".to_owned(), one(&["Kent"])),
            ("all".to_owned(), one(&["*"])),
            ("two".to_owned(), one(&["a", "b"])),
            ("up".to_owned(), one(&["../x"])),
            ("none".to_owned(), one(&[""])),
        ];
        let claims = &claims.into();
        fill_template(
            template,
            TemplateVars { job_id: "j-1", job_type: "NIGHT", date, params: &params, claims },
        )
    }

    #[test]
    fn claims_are_filled_in() {
        let path = filled("file:{claim:county}/{claim:all}.csv", json!({})).unwrap();
        assert_eq!(path, "file:Kent/*.csv");
        for (refused, why) in [
            ("{claim:two}", "2 values"),
            ("{claim:up}", "`/`"),
            ("{claim:none}", "empty"),
            ("{claim:other}", "no claim `other`"),
        ] {
            let error = filled(refused, json!({})).unwrap_err().to_string();
            assert!(error.contains(why), "{refused}: {error}");
        }
        // A param cannot replace a claim.
        assert!(filled("file:{claim:other}", json!({"claim:other": "x"})).is_err());
    }

    #[test]
    fn placeholders_are_filled_in() {
        let template = "s3://bucket/{job_type}/{date}/{job_id}/{month}-{n}/";
        let path = filled(template, json!({"month": "2025-01", "n": 7})).unwrap();
        assert_eq!(path, "s3://bucket/NIGHT/2025-01-31/j-1/2025-01-7/");
        assert_eq!(placeholders("{a}/{b}").unwrap(), ["a", "b"]);
    }

    #[test]
    fn values_that_leave_the_destination_are_refused() {
        for value in ["", " ", "..", "a/b", "a\\b", "a..b", "a\nb", "\u{7f}", "\u{85}"] {
            let error = filled("file:x/{p}/", json!({ "p": value })).unwrap_err();
            assert!(error.to_string().contains("`p`"), "{value:?} {error}");
        }
        assert!(filled("file:x/{p}{q}/y", json!({"p": ".", "q": "."})).is_err());
        assert!(filled("file:x/{p}/y", json!({"p": "."})).is_err());
        assert!(filled("file:x/{p}/y", json!({"p": ["a"]})).is_err());
        assert_eq!(filled("file:../x/{job_id}/", json!({})).unwrap(), "file:../x/j-1/");
    }

    #[test]
    fn an_unknown_placeholder_is_explained() {
        let error = filled("file:{mouth}/", json!({"month": "x"})).unwrap_err().to_string();
        assert!(error.contains("{mouth}") && error.contains("{month}"), "{error}");
        for wrong in ["file:{", "file:}", "file:{}", "file:{a{b}}"] {
            assert!(filled(wrong, json!({})).is_err(), "{wrong}");
        }
    }
}
