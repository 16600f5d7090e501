//! The errors of AWS, by the name of the exception; whatever got no answer is the connection's.

use aws_sdk_dynamodb::{
    config::http::HttpResponse,
    error::{ProvideErrorMetadata, SdkError},
};

use crate::{Class, Error};

impl<E> From<SdkError<E, HttpResponse>> for Error
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    fn from(error: SdkError<E, HttpResponse>) -> Self {
        if let SdkError::ServiceError(failure) = &error {
            let (code, message) = (failure.err().code(), failure.err().message());
            let status = failure.raw().status().as_u16();
            return Error {
                class: class_of(code.unwrap_or_default(), status),
                code: code.map(str::to_owned),
                message: message.or(code).unwrap_or("AWS refused the request").to_owned(),
            };
        }
        let message = chain(&error);
        // Without credentials nothing is sent, and trying again would not find any.
        let class = match &error {
            _ if message.contains("credential") => Class::Permission,
            SdkError::ConstructionFailure(_) => Class::Definition,
            _ => Class::Connection,
        };
        Error::new(class, message)
    }
}

/// What an exception of AWS means. An error inside the service leaves open what happened.
pub(crate) fn class_of(code: &str, status: u16) -> Class {
    match code {
        "ProvisionedThroughputExceededException"
        | "ProvisionedThroughputExceeded"
        | "ThrottlingException"
        | "ThrottlingError"
        | "Throttling"
        | "RequestLimitExceeded"
        | "LimitExceededException"
        | "ResourceInUseException"
        | "TransactionConflict"
        | "TransactionConflictException"
        | "TransactionInProgressException"
        | "ReplicatedWriteConflictException" => Class::Busy,
        "AccessDenied"
        | "AccessDeniedException"
        | "ExpiredTokenException"
        | "IncompleteSignature"
        | "IncompleteSignatureException"
        | "InvalidClientTokenId"
        | "InvalidSignatureException"
        | "MissingAuthenticationToken"
        | "MissingAuthenticationTokenException"
        | "OptInRequired"
        | "SignatureDoesNotMatch"
        | "UnrecognizedClientException" => Class::Permission,
        "ResourceNotFoundException"
        | "TableNotFoundException"
        | "IndexNotFoundException"
        | "UnknownOperationException" => Class::Definition,
        "ValidationException"
        | "ValidationError"
        | "ItemCollectionSizeLimitExceeded"
        | "ItemCollectionSizeLimitExceededException"
        | "DuplicateItemException" => Class::Data,
        _ if status >= 500 => Class::Connection,
        _ if status == 401 || status == 403 => Class::Permission,
        _ => Class::Other,
    }
}

/// The SDK's own words stop at "dispatch failure"; the reason is further down.
fn chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        source = cause.source();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_have_their_class() {
        for (code, status, class) in [
            ("ThrottlingException", 400, Class::Busy),
            ("ProvisionedThroughputExceededException", 400, Class::Busy),
            ("TransactionConflict", 400, Class::Busy),
            ("InternalServerError", 500, Class::Connection),
            ("ServiceUnavailable", 503, Class::Connection),
            ("AccessDeniedException", 400, Class::Permission),
            ("ExpiredTokenException", 400, Class::Permission),
            ("ResourceNotFoundException", 400, Class::Definition),
            ("ValidationException", 400, Class::Data),
            ("ConditionalCheckFailedException", 400, Class::Other),
        ] {
            assert_eq!(class_of(code, status), class, "{code}");
        }
    }
}
