//! Forms whose input may be refused: the input is shown again, with the reason beside its field.

use crate::problem::{ApiError, ApiResult, ProblemDetails};
use axum::http::StatusCode;
use maud::{Markup, html};

/// The input of a form: empty at first, or as it was sent and why it was refused.
#[derive(Default)]
pub(super) struct FormInput {
    /// The name of the form, since a page has several.
    form: &'static str,
    values: Vec<(String, String)>,
    problem: Option<ProblemDetails>,
}

/// The input of a form that was not sent.
static EMPTY: FormInput = FormInput { form: "", values: Vec::new(), problem: None };

/// A field of a form.
pub(super) struct Field {
    pub(super) name: String,
    label: String,
    hint: Markup,
    placeholder: Option<String>,
    kind: FieldKind,
}

/// The element of a field.
pub(super) enum FieldKind {
    Text,
    /// A whole number of at least this.
    Number(u32),
    /// A text of several lines.
    Lines,
}

impl Field {
    /// A field with its label and what to enter.
    pub(super) fn new(name: &str, label: &str, hint: Markup, kind: FieldKind) -> Field {
        Field { name: name.to_owned(), label: label.to_owned(), hint, placeholder: None, kind }
    }

    /// Shows an example, or the default, while the field is empty.
    pub(super) fn placeholder(self, placeholder: Option<String>) -> Field {
        Field { placeholder, ..self }
    }
}

impl FormInput {
    /// The input of a form that was refused.
    ///
    /// # Errors
    /// The error itself, if other input would not help.
    pub(super) fn refused(
        form: &'static str,
        values: Vec<(String, String)>,
        error: ApiError,
    ) -> ApiResult<FormInput> {
        match error.status() {
            StatusCode::BAD_REQUEST
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::CONFLICT => Ok(FormInput::failed(form, values, error)),
            _ => Err(error),
        }
    }

    /// The input of a form whose action failed for any reason.
    pub(super) fn failed(
        form: &'static str,
        values: Vec<(String, String)>,
        error: ApiError,
    ) -> FormInput {
        FormInput { form, values, problem: Some(error.into_problem()) }
    }

    /// The status of the page that shows the input.
    pub(super) fn status(&self) -> StatusCode {
        let problem = self.problem.as_ref();
        let status = problem.and_then(|problem| StatusCode::from_u16(problem.status).ok());
        status.unwrap_or(StatusCode::OK)
    }

    /// The input of the form with this name.
    pub(super) fn of(&self, form: &str) -> &FormInput {
        if self.form == form { self } else { &EMPTY }
    }

    /// Whether the form was sent and refused.
    pub(super) fn is_refused(&self) -> bool {
        self.problem.is_some()
    }

    /// Whether one of these fields has a value, or is why the form was refused.
    pub(super) fn concerns(&self, fields: &[Field]) -> bool {
        fields.iter().any(|field| self.value(&field.name).is_some() || self.is_about(&field.name))
    }

    /// Whether a field had this value, such as a box that was ticked.
    pub(super) fn has(&self, name: &str, value: &str) -> bool {
        self.values.iter().any(|(known, given)| known == name && given == value)
    }

    fn value(&self, name: &str) -> Option<&str> {
        let found = self.values.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    fn is_about(&self, name: &str) -> bool {
        let field = self.problem.as_ref().and_then(|problem| problem.field.as_deref());
        field.is_some_and(|field| input_of(field) == name)
    }

    /// A field with its label, its value, and the reason if it was refused.
    pub(super) fn field(&self, field: &Field) -> Markup {
        let Field { name, label, hint, placeholder, kind } = field;
        let value = self.value(name).unwrap_or_default();
        let is_wrong = self.is_about(name);
        let reason = format!("error-{}-{name}", self.form);
        let invalid = is_wrong.then_some("true");
        let described = is_wrong.then_some(reason.as_str());
        html! {
            div.field {
                label {
                    (label) " " span.faint { (hint) }
                    @match kind {
                        FieldKind::Lines => textarea name=(name) rows="4" placeholder=[placeholder]
                            spellcheck="false" aria-invalid=[invalid] aria-describedby=[described] { (value) },
                        FieldKind::Number(least) => input name=(name) type="number" min=(least) step="1"
                            value=(value) placeholder=[placeholder] aria-invalid=[invalid]
                            aria-describedby=[described];,
                        FieldKind::Text => input name=(name) value=(value) placeholder=[placeholder]
                            autocomplete="off" aria-invalid=[invalid] aria-describedby=[described];,
                    }
                }
                @if is_wrong { p.field-error #(reason) role="alert" { (self.reason(name)) } }
            }
        }
    }

    /// The reason why the form was refused, if it is about none of these fields.
    pub(super) fn other_reason<'a>(&self, fields: impl IntoIterator<Item = &'a Field>) -> Markup {
        let mut fields = fields.into_iter();
        let elsewhere = self.is_refused() && !fields.any(|field| self.is_about(&field.name));
        html! { @if elsewhere { p.problem role="alert" { (self.reason("")) } } }
    }

    /// The reason why the form was refused, which is about none of its fields.
    pub(super) fn reason_of_all(&self) -> Markup {
        self.other_reason([])
    }

    /// The reason as a sentence about a field. A part of the field, such as `ids[2]`, is named.
    fn reason(&self, name: &str) -> String {
        let Some(problem) = &self.problem else { return String::new() };
        let detail = problem.detail.as_deref().unwrap_or(&problem.title);
        match problem.field.as_deref() {
            Some(field) if field != name && !is_whole(field, name) => format!("{field}: {detail}"),
            _ => detail.to_owned(),
        }
    }
}

/// Whether a field of a request is all of an input: `params.month` is that of `param.month`.
fn is_whole(field: &str, name: &str) -> bool {
    field.strip_prefix("params.").is_some_and(|param| name.strip_prefix("param.") == Some(param))
}

/// The name of the input for a field of a request: `params.month`, `filter.years[2]`, `items[0].id`.
fn input_of(field: &str) -> String {
    let field = field.split('[').next().unwrap_or(field);
    match field.strip_prefix("params.") {
        Some(name) => format!("param.{name}"),
        None => field.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::Problem;
    use windlass_core::problem::Code;

    fn refused(field: &str) -> FormInput {
        let values = vec![("ids".to_owned(), "1\n<b>".to_owned())];
        let error = Problem::field(Code::Request, field, "is wrong").into();
        FormInput::refused("run", values, error).unwrap()
    }

    fn lines(name: &str) -> Field {
        Field::new(name, "Keys", html! {}, FieldKind::Lines)
    }

    #[test]
    fn the_reason_is_beside_the_field_that_it_is_about() {
        let input = refused("ids[1]");
        let shown = input.field(&lines("ids")).into_string();
        assert!(shown.contains("1\n&lt;b&gt;</textarea>"), "{shown}");
        assert!(shown.contains(">ids[1]: is wrong</p>"), "{shown}");
        assert!(!input.field(&lines("items")).into_string().contains("wrong"));
        assert_eq!(input.other_reason(&[lines("ids")]).into_string(), "");
        assert!(
            refused("params.month")
                .field(&lines("param.month"))
                .into_string()
                .contains(">is wrong<")
        );
        let other = refused("claims.county").other_reason(&[lines("ids")]).into_string();
        assert!(other.contains("claims.county: is wrong"), "{other}");
        assert!(!input.of("throughput").is_refused() && input.of("run").is_refused());
    }
}
