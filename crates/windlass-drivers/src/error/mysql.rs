//! Classifies errors of MySQL and MariaDB by number, and by SQLSTATE where that is specific.

use mysql_async::{DriverError, Error as Failure, ServerError};

use crate::{Error, ErrorClass};

impl From<Failure> for Error {
    fn from(error: Failure) -> Self {
        match error {
            Failure::Server(ServerError { code, message, state }) => Error {
                class: class_of(code, &state, &message),
                code: Some(code.to_string()),
                message,
            },
            Failure::Driver(error) => Error::new(class_of_driver(&error), error.to_string()),
            Failure::Io(error) => Error::new(ErrorClass::Connection, error.to_string()),
            // Its text would repeat parts of the URL.
            Failure::Url(_) => Error::new(ErrorClass::Definition, "the MySQL URL is not valid"),
            Failure::Other(error) => Error::new(ErrorClass::Other, error.to_string()),
        }
    }
}

/// Many errors have the unspecific SQLSTATE `HY000`, so the number is checked first.
fn class_of(code: u16, sqlstate: &str, message: &str) -> ErrorClass {
    match code {
        // The connection is lost, or the server is down or accepts no more connections.
        1040 | 1053 | 1077 | 1080 | 1152 | 1158..=1161 | 1184 | 1927 | 4031 => {
            ErrorClass::Connection
        }
        // Locks, deadlocks, time-outs, killed statements, exceeded quotas, changed tables.
        1020 | 1041 | 1203 | 1205 | 1206 | 1213 | 1226 | 1317 | 1412 | 1614 | 1637 | 1969
        | 3024 | 3058 | 3572 | 3636 => ErrorClass::Retry,
        1021 | 1114 => ErrorClass::Full,
        3 | 1026 if message.contains("No space left") || message.contains("rrno: 28") => {
            ErrorClass::Full
        }
        1036 | 1290 | 1792 | 1836 | 3989 => ErrorClass::ReadOnly,
        1044 | 1045 | 1130 | 1131 | 1142 | 1143 | 1227 | 1251 | 1275 | 1370 | 1410 | 1698
        | 1862 | 3118 | 3878 | 4151 => ErrorClass::Permission,
        // Refused values, including packets that are too large: halving the batch helps.
        1153
        | 1242
        | 1265
        | 1300
        | 1364
        | 1366
        | 1367
        | 1411
        | 1416
        | 1525
        | 1526
        | 1644
        | 1748
        | 1977
        | 3140..=3158
        | 3819
        | 4025
        | 4035..=4045
        | 4078 => ErrorClass::Data,
        // Incompatible collations, tables that cannot be updated, statements that cannot be prepared.
        1093
        | 1210
        | 1267
        | 1270
        | 1271
        | 1288
        | 1295
        | 1347
        | 1348
        | 1356
        | 1390
        | 1393..=1395
        | 1471
        | 1665
        | 1906
        | 3105 => ErrorClass::Definition,
        _ => class_of_sqlstate(sqlstate),
    }
}

fn class_of_sqlstate(sqlstate: &str) -> ErrorClass {
    match sqlstate.get(..2).unwrap_or_default() {
        "08" => ErrorClass::Connection,
        "40" | "70" => ErrorClass::Retry,
        // 45 is raised by SIGNAL in the user's triggers and functions.
        "22" | "23" | "44" | "45" => ErrorClass::Data,
        "21" | "42" | "0A" | "3D" | "3F" => ErrorClass::Definition,
        "28" => ErrorClass::Permission,
        "25" => ErrorClass::ReadOnly,
        _ => ErrorClass::Other,
    }
}

fn class_of_driver(error: &DriverError) -> ErrorClass {
    use DriverError as E;
    match error {
        E::ConnectionClosed
        | E::PacketOutOfOrder
        | E::PoolDisconnected
        | E::UnexpectedPacket { .. }
        | E::BadCompressedPacketHeader => ErrorClass::Connection,
        E::PacketTooLarge => ErrorClass::Data,
        E::StmtParamsMismatch { .. }
        | E::StmtParamsNumberExceedsLimit { .. }
        | E::MixedParams
        | E::Params(_)
        | E::NoClientSslFlagFromServer => ErrorClass::Definition,
        E::UnknownAuthPlugin { .. } | E::MysqlOldPasswordDisabled | E::CleartextPluginDisabled => {
            ErrorClass::Permission
        }
        _ => ErrorClass::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_classified() {
        for (code, sqlstate, class) in [
            (1205, "HY000", ErrorClass::Retry),
            (1213, "40001", ErrorClass::Retry),
            (1969, "70100", ErrorClass::Retry),
            (1040, "08004", ErrorClass::Connection),
            (1317, "70100", ErrorClass::Retry),
            (1053, "08S01", ErrorClass::Connection),
            (1927, "70100", ErrorClass::Connection),
            (1062, "23000", ErrorClass::Data),
            (1048, "23000", ErrorClass::Data),
            (1452, "23000", ErrorClass::Data),
            (4025, "23000", ErrorClass::Data),
            (3819, "HY000", ErrorClass::Data),
            (1406, "22001", ErrorClass::Data),
            (1264, "22003", ErrorClass::Data),
            (1292, "22007", ErrorClass::Data),
            (1366, "22007", ErrorClass::Data),
            (1364, "HY000", ErrorClass::Data),
            (1644, "45000", ErrorClass::Data),
            (1153, "08S01", ErrorClass::Data),
            (1054, "42S22", ErrorClass::Definition),
            (1146, "42S02", ErrorClass::Definition),
            (1064, "42000", ErrorClass::Definition),
            (1049, "42000", ErrorClass::Definition),
            (1267, "HY000", ErrorClass::Definition),
            (1045, "28000", ErrorClass::Permission),
            (1142, "42000", ErrorClass::Permission),
            (1290, "HY000", ErrorClass::ReadOnly),
            (1792, "25006", ErrorClass::ReadOnly),
            (1114, "HY000", ErrorClass::Full),
            (1105, "HY000", ErrorClass::Other),
        ] {
            assert_eq!(class_of(code, sqlstate, ""), class, "{code}");
        }
        assert_eq!(class_of(3, "HY000", "Error writing file (errno: 28)"), ErrorClass::Full);
    }
}
