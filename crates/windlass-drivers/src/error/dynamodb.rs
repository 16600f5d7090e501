//! Classifies errors of AWS by the name of the exception. A request without an answer is an error of the
//! connection.

use aws_sdk_dynamodb::{
    config::http::HttpResponse,
    error::{ProvideErrorMetadata, SdkError},
};

use crate::{Error, ErrorClass};

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
        // Without credentials nothing is sent, and a retry would not find any.
        let class = match &error {
            _ if message.contains("credential") => ErrorClass::Permission,
            SdkError::ConstructionFailure(_) => ErrorClass::Definition,
            _ => ErrorClass::Connection,
        };
        Error::new(class, message)
    }
}

/// The class of an exception. After an error inside the service the outcome is unknown.
pub(crate) fn class_of(code: &str, status: u16) -> ErrorClass {
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
        | "ReplicatedWriteConflictException" => ErrorClass::Busy,
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
        | "UnrecognizedClientException" => ErrorClass::Permission,
        "ResourceNotFoundException"
        | "TableNotFoundException"
        | "IndexNotFoundException"
        | "UnknownOperationException" => ErrorClass::Definition,
        "ValidationException"
        | "ValidationError"
        | "ItemCollectionSizeLimitExceeded"
        | "ItemCollectionSizeLimitExceededException"
        | "DuplicateItemException" => ErrorClass::Data,
        _ if status >= 500 => ErrorClass::Connection,
        _ if status == 401 || status == 403 => ErrorClass::Permission,
        _ => ErrorClass::Other,
    }
}

/// The message with its causes. The SDK's own message is only "dispatch failure".
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
    fn exceptions_are_classified() {
        for (code, status, class) in [
            ("ThrottlingException", 400, ErrorClass::Busy),
            ("ProvisionedThroughputExceededException", 400, ErrorClass::Busy),
            ("TransactionConflict", 400, ErrorClass::Busy),
            ("InternalServerError", 500, ErrorClass::Connection),
            ("ServiceUnavailable", 503, ErrorClass::Connection),
            ("AccessDeniedException", 400, ErrorClass::Permission),
            ("ExpiredTokenException", 400, ErrorClass::Permission),
            ("ResourceNotFoundException", 400, ErrorClass::Definition),
            ("ValidationException", 400, ErrorClass::Data),
            ("ConditionalCheckFailedException", 400, ErrorClass::Other),
        ] {
            assert_eq!(class_of(code, status), class, "{code}");
        }
    }
}
