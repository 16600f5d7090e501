//! The errors of MySQL and MariaDB, by their number, and by SQLSTATE where that says enough.

use mysql_async::{DriverError, Error as Failure, ServerError};

use crate::{Class, Error};

impl From<Failure> for Error {
    fn from(error: Failure) -> Self {
        match error {
            Failure::Server(ServerError { code, message, state }) => Error {
                class: class_of(code, &state, &message),
                code: Some(code.to_string()),
                message,
            },
            Failure::Driver(error) => Error::new(class_of_driver(&error), error.to_string()),
            Failure::Io(error) => Error::new(Class::Connection, error.to_string()),
            // Its text would repeat parts of the URL.
            Failure::Url(_) => Error::new(Class::Definition, "the MySQL URL is not valid"),
            Failure::Other(error) => Error::new(Class::Other, error.to_string()),
        }
    }
}

/// Most of what matters has the SQLSTATE `HY000`, which says nothing, so numbers come first.
fn class_of(code: u16, sqlstate: &str, message: &str) -> Class {
    match code {
        // The connection or the server is unavailable, or takes no more connections.
        1040 | 1053 | 1077 | 1080 | 1152 | 1158..=1161 | 1184 | 1927 | 4031 => Class::Connection,
        // Locks, deadlocks, time-outs, killed statements, exceeded quotas, changed tables.
        1020 | 1041 | 1203 | 1205 | 1206 | 1213 | 1226 | 1317 | 1412 | 1614 | 1637 | 1969
        | 3024 | 3058 | 3572 | 3636 => Class::Retry,
        1021 | 1114 => Class::Full,
        3 | 1026 if message.contains("No space left") || message.contains("rrno: 28") => {
            Class::Full
        }
        1036 | 1290 | 1792 | 1836 | 3989 => Class::ReadOnly,
        1044 | 1045 | 1130 | 1131 | 1142 | 1143 | 1227 | 1251 | 1275 | 1370 | 1410 | 1698
        | 1862 | 3118 | 3878 | 4151 => Class::Permission,
        // Values that were refused, a packet too large for the server among them: halving helps.
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
        | 4078 => Class::Data,
        // Collations that do not mix, tables that cannot be updated, what cannot be prepared.
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
        | 3105 => Class::Definition,
        _ => class_of_sqlstate(sqlstate),
    }
}

fn class_of_sqlstate(sqlstate: &str) -> Class {
    match sqlstate.get(..2).unwrap_or_default() {
        "08" => Class::Connection,
        "40" | "70" => Class::Retry,
        // 45 is what SIGNAL raises, in a trigger or a function of the user's.
        "22" | "23" | "44" | "45" => Class::Data,
        "21" | "42" | "0A" | "3D" | "3F" => Class::Definition,
        "28" => Class::Permission,
        "25" => Class::ReadOnly,
        _ => Class::Other,
    }
}

fn class_of_driver(error: &DriverError) -> Class {
    use DriverError as E;
    match error {
        E::ConnectionClosed
        | E::PacketOutOfOrder
        | E::PoolDisconnected
        | E::UnexpectedPacket { .. }
        | E::BadCompressedPacketHeader => Class::Connection,
        E::PacketTooLarge => Class::Data,
        E::StmtParamsMismatch { .. }
        | E::StmtParamsNumberExceedsLimit { .. }
        | E::MixedParams
        | E::Params(_)
        | E::NoClientSslFlagFromServer => Class::Definition,
        E::UnknownAuthPlugin { .. } | E::MysqlOldPasswordDisabled | E::CleartextPluginDisabled => {
            Class::Permission
        }
        _ => Class::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_class() {
        for (code, sqlstate, class) in [
            (1205, "HY000", Class::Retry),
            (1213, "40001", Class::Retry),
            (1969, "70100", Class::Retry),
            (1040, "08004", Class::Connection),
            (1317, "70100", Class::Retry),
            (1053, "08S01", Class::Connection),
            (1927, "70100", Class::Connection),
            (1062, "23000", Class::Data),
            (1048, "23000", Class::Data),
            (1452, "23000", Class::Data),
            (4025, "23000", Class::Data),
            (3819, "HY000", Class::Data),
            (1406, "22001", Class::Data),
            (1264, "22003", Class::Data),
            (1292, "22007", Class::Data),
            (1366, "22007", Class::Data),
            (1364, "HY000", Class::Data),
            (1644, "45000", Class::Data),
            (1153, "08S01", Class::Data),
            (1054, "42S22", Class::Definition),
            (1146, "42S02", Class::Definition),
            (1064, "42000", Class::Definition),
            (1049, "42000", Class::Definition),
            (1267, "HY000", Class::Definition),
            (1045, "28000", Class::Permission),
            (1142, "42000", Class::Permission),
            (1290, "HY000", Class::ReadOnly),
            (1792, "25006", Class::ReadOnly),
            (1114, "HY000", Class::Full),
            (1105, "HY000", Class::Other),
        ] {
            assert_eq!(class_of(code, sqlstate, ""), class, "{code}");
        }
        assert_eq!(class_of(3, "HY000", "Error writing file (errno: 28)"), Class::Full);
    }
}
