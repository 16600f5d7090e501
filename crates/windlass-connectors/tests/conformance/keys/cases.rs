//! The key types of each database, with extreme values.

/// One table: its key and its rows.
pub(super) struct Case {
    /// Statements before the table is created.
    pub(super) before: &'static str,
    /// The definitions of the key's columns.
    pub(super) columns: &'static str,
    /// The key's columns.
    pub(super) key: &'static str,
    /// The options behind the table's definition.
    pub(super) options: &'static str,
    /// The keys as SQL literals.
    pub(super) rows: &'static [&'static str],
    /// The expected error if an export does not support one of the keys.
    pub(super) unexported: Option<&'static str>,
}

/// Columns that cannot be keys.
pub(super) struct Refused {
    pub(super) postgres: &'static str,
    pub(super) mariadb: &'static str,
}

pub(super) const REFUSED: Refused =
    Refused { postgres: "k JSONB", mariadb: "k ENUM('b', 'a') NOT NULL" };

const fn single(columns: &'static str, rows: &'static [&'static str]) -> Case {
    Case { before: "", columns, key: "k", options: "", rows, unexported: None }
}

const fn several(columns: &'static str, key: &'static str, rows: &'static [&'static str]) -> Case {
    Case { before: "", columns, key, options: "", rows, unexported: None }
}

impl Case {
    const fn after(self, before: &'static str) -> Case {
        Case { before, ..self }
    }

    const fn with(self, options: &'static str) -> Case {
        Case { options, ..self }
    }

    const fn unexported(self, value: &'static str) -> Case {
        Case { unexported: Some(value), ..self }
    }
}

const FLOATS: &[&str] = &[
    "'NaN'",
    "'Infinity'",
    "'-Infinity'",
    "'-0'",
    "'0.1'",
    "'0.30000000000000004'",
    "'1e16'",
    "'1e19'",
    "'9007199254740993'",
    "'1.7976931348623157e308'",
    "'-1.7976931348623155e308'",
    "'5e-324'",
    "'2.2250738585072011e-308'",
    "'123456.78901234567'",
    "'7.2057594037927933e16'",
];

const REALS: &[&str] = &[
    "'NaN'",
    "'Infinity'",
    "'-Infinity'",
    "'0'",
    "'0.1'",
    "'1e-45'",
    "'3.4028235e38'",
    "'16777216'",
];

const NUMERICS: &[&str] = &[
    "'NaN'",
    "'Infinity'",
    "'-Infinity'",
    "'0.00'",
    "'1.10'",
    "'1e-100'",
    "'1e100'",
    "'12345678901234567890.123456789'",
];

const DATES: &[&str] = &[
    "'infinity'",
    "'-infinity'",
    "'4714-11-24 BC'",
    "'0044-03-15 BC'",
    "'0001-01-01'",
    "'2025-01-31'",
    "'9999-12-31'",
    "'10000-01-01'",
    "'5874897-12-31'",
];

const TIMESTAMPS: &[&str] = &[
    "'infinity'",
    "'-infinity'",
    "'4714-11-24 00:00:00 BC'",
    "'0044-03-15 12:00:00.000001 BC'",
    "'0001-01-01 00:00:00'",
    "'1969-12-31 23:59:59.999999'",
    "'2025-01-31 03:00:00.123456'",
    "'9999-12-31 23:59:59.999999'",
    "'294276-12-31 23:59:59.999999'",
];

const MOMENTS: &[&str] = &[
    "'infinity'",
    "'-infinity'",
    "'4714-11-24 00:00:00+00 BC'",
    "'0044-03-15 12:00:00.000001+00 BC'",
    "'0001-01-01 00:00:00+00'",
    "'1969-12-31 23:59:59.999999+00'",
    "'2025-01-31 03:00:00.123456+00'",
    "'9999-12-31 23:59:59.999999+00'",
    "'294276-12-31 23:59:59.999999+00'",
];

const TEXTS: &[&str] = &[
    "''",
    "' '",
    "'  '",
    "'a'",
    "'ä'",
    "'b '",
    "'日本'",
    "E'\\t'",
    "E'\\x01'",
    "E'it''s \"\\\\ '",
    "'null'",
    "'[1]'",
    "'{\"$float\":\"NaN\"}'",
    "'{\"$bytes\":\"00\"}'",
    "'NaN'",
    "repeat('x', 2000)",
    "(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 78) AS n)",
];

/// Texts that differ in every collation.
const FOLDED: &[&str] =
    &["''", "' '", "'a'", "'ä'", "'B'", "'ß'", "'日本'", "'it''s'", "repeat('x', 2000)"];

pub(super) const POSTGRES: &[Case] = &[
    single("k float8", FLOATS),
    single("k d_float", FLOATS).after("CREATE DOMAIN d_float AS float8"),
    single("k d_again", FLOATS)
        .after("CREATE DOMAIN d_inner AS float8; CREATE DOMAIN d_again AS d_inner"),
    single("k real", REALS),
    single("k numeric", NUMERICS),
    single("k d_numeric", NUMERICS).after("CREATE DOMAIN d_numeric AS numeric"),
    single("k numeric(12, 2)", &["'NaN'", "'-9999999999.99'", "'0'", "'1.1'", "'9999999999.99'"])
        .unexported("NaN"),
    single("k numeric(3, -2)", &["'-99900'", "'0'", "'100'", "'99900'"]),
    single("k date", DATES).unexported("infinity"),
    single("k d_date", &["'0044-03-15 BC'", "'2025-01-31'", "'9999-12-31'"])
        .after("CREATE DOMAIN d_date AS date"),
    single("k timestamp", TIMESTAMPS).unexported("infinity"),
    single("k timestamp(0)", &["'2025-01-31 03:00:00.6'", "'2025-01-31 03:00:02'"]),
    single("k timestamptz", MOMENTS).unexported("infinity"),
    single("k d_moment", MOMENTS)
        .after("CREATE DOMAIN d_moment AS timestamptz")
        .unexported("infinity"),
    single("k time", &["'00:00'", "'12:34:56.789'", "'23:59:59.999999'", "'24:00:00'"]),
    single("k timetz", &["'00:00+09'", "'00:00-09'", "'12:00+05:30'", "'24:00:00+00'"]),
    single(
        "k interval",
        &[
            "'0'",
            "'-1 days +02:03:04'",
            "'1 year 2 mons -3 days +04:05:06.789'",
            "'-178000000 years'",
            "'178000000 years'",
            "'1 mon'",
            "'31 days'",
            "'-00:00:00.000001'",
        ],
    ),
    single("k text", TEXTS),
    single("k text COLLATE \"C\"", TEXTS),
    single("k text COLLATE ci", FOLDED).after(
        "CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
    ),
    single("k d_text COLLATE \"POSIX\"", TEXTS).after("CREATE DOMAIN d_text AS text COLLATE \"C\""),
    single("k citext", TEXTS).after("CREATE EXTENSION citext"),
    single("k varchar(10)", &["''", "'a'", "'a '", "'0123456789'"]),
    single("k char(5)", &["''", "'a'", "'a b'", "'日本'", "'abcde'"]),
    single("k \"char\"", &["''", "'a'", "'~'"]),
    single("k name", &["''", "'a'", "repeat('x', 63)"]),
    single(
        "k bytea",
        &[
            "'\\x'",
            "'\\x00'",
            "'\\x0000'",
            "'\\x5c27'",
            "'\\xff'",
            "decode((SELECT string_agg(md5(n::text), '') FROM generate_series(1, 160) AS n), 'hex')",
        ],
    ),
    single("k bool", &["true", "false"]),
    single("k int2", &["-32768", "0", "32767"]),
    single("k int8", &["-9223372036854775808", "0", "9223372036854775807", "9007199254740993"]),
    single("k oid", &["0", "4294967295"]),
    single("k money", &["-92233720368547758.08", "0", "1234.5"]),
    single("k uuid", &["'00000000-0000-0000-0000-000000000000'", "gen_random_uuid()"]),
    single("k inet", &["'0.0.0.0/0'", "'10.0.0.1'", "'10.0.0.1/24'", "'::'", "'::1/64'"]),
    single("k cidr", &["'10.0.0.0/8'", "'10.0.0.0/9'", "'::/0'"]),
    single("k macaddr", &["'00:00:00:00:00:00'", "'ff:ff:ff:ff:ff:ff'"]),
    single("k bit(5)", &["'00000'", "'00001'", "'10000'", "'11111'"]),
    single("k varbit", &["''", "'0'", "'00'", "'1'", "'10'"]),
    single("k int4[]", &["'{}'", "'{NULL,1}'", "'{1}'", "'{1,2}'", "'{{1},{2}}'"])
        .unexported("lists have one dimension"),
    single(
        "k text[]",
        &["'{}'", "'{\"\"}'", "'{\"a,b\",\"NULL\",NULL}'", "'{\"\\\"{}\\\\\\\\\"}'"],
    ),
    single(
        "k d_array",
        &["'{}'", "'{NaN}'", "'{1,Infinity}'", "'{0.30000000000000004}'", "'{0.3}'"],
    )
    .after("CREATE DOMAIN d_array AS float8[]"),
    single("k mood", &["'sad'", "'it''s'", "'happy'"])
        .after("CREATE TYPE mood AS ENUM ('sad', 'it''s', 'happy')"),
    single("k pair", &["'(1,a)'", "'(1,)'", "'(1,\"b \"\",\")'", "'(,a)'"])
        .after("CREATE TYPE pair AS (n int, t text)"),
    single("k int4range", &["'empty'", "'(,)'", "'[1,5)'", "'[1,)'"]),
    single("k tstzrange", &["'empty'", "'[2025-01-01,infinity)'", "'[-infinity,2025-01-01]'"]),
    single("k pg_lsn", &["'0/0'", "'FFFFFFFF/FFFFFFFF'"]),
    single("k tsvector", &["''", "'a:1 b:2'"]),
    single("k xid8", &["'0'", "'18446744073709551615'"]),
    several("a float8, b text", "a, b", &["'NaN', ''", "'NaN', 'a'", "'Infinity', 'a'", "0, 'b'"]),
    several("a real, b char(3)", "a, b", &["0.1, ''", "0.1, 'a'", "'-Infinity', 'abc'"]),
    several("a int4[], b bool", "a, b", &["'{}', true", "'{}', false", "'{1}', true"]),
    several(
        "a date, b numeric, c bytea",
        "a, b, c",
        &["'infinity', 'NaN', '\\x'", "'infinity', 'NaN', '\\x00'", "'0044-03-15 BC', 1.0, '\\x'"],
    )
    .unexported("infinity"),
];

const SQLITE_FLOATS: &[&str] = &[
    "9e999",
    "-9e999",
    "-0.0",
    "0.1",
    "0.30000000000000004",
    "1e16",
    "1e19",
    "1.7976931348623157e308",
    "5e-324",
    "2.2250738585072011e-308",
    "123456.78901234567",
    "7.2057594037927933e16",
    "8.41e21",
    "9.5367431640625e-07",
];

const SQLITE_ANY: &[&str] = &[
    "9e999",
    "-9e999",
    "0.5",
    "1",
    "9007199254740993",
    "9223372036854775807",
    "'abc'",
    "''",
    "' '",
    "'a' || char(0) || 'b'",
    "'a' || char(0)",
    "x''",
    "x'00'",
    "x'31'",
    "x'616263'",
    "'1x'",
];

const SQLITE_TEXTS: &[&str] = &[
    "''",
    "' x'",
    "'a'",
    "'b'",
    "'ä'",
    "'日本'",
    "'a' || char(0) || 'b'",
    "char(0)",
    "char(9)",
    "'null'",
    "'{\"$float\":\"NaN\"}'",
    "'{\"float\":1}'",
    "'1e3'",
    "printf('%.5000c', 'x')",
    "x'61'",
];

pub(super) const SQLITE: &[Case] = &[
    single("k REAL NOT NULL", SQLITE_FLOATS),
    single("k DOUBLE PRECISION NOT NULL", SQLITE_FLOATS).with(" WITHOUT ROWID"),
    single("k REAL NOT NULL", &["9e999", "'abc'", "0.1", "x'00'"]).unexported("abc"),
    single("k NOT NULL", SQLITE_ANY).unexported("bytes"),
    single("k NOT NULL", SQLITE_ANY).with(" WITHOUT ROWID").unexported("bytes"),
    single("k ANY NOT NULL", SQLITE_ANY).with(" STRICT").unexported("bytes"),
    single("k BLOB NOT NULL", SQLITE_ANY).unexported("not bytes"),
    single("k INT NOT NULL", SQLITE_ANY).unexported("integer"),
    single("k NUMERIC NOT NULL", SQLITE_ANY).unexported("bytes"),
    single("k BOOLEAN NOT NULL", &["0", "1", "5", "'x'"]).unexported("true nor false"),
    single("k INTEGER", &["-9223372036854775808", "0", "9223372036854775807"]),
    single("k TEXT NOT NULL", SQLITE_TEXTS).unexported("bytes"),
    single("k TEXT NOT NULL COLLATE NOCASE", SQLITE_TEXTS).unexported("bytes"),
    single("k TEXT NOT NULL COLLATE RTRIM", SQLITE_TEXTS).unexported("bytes"),
    single("k DATE NOT NULL", &["'2025-01-31'", "2460000.5", "1700000000", "'-0044-03-15'"]),
    several(
        "a REAL NOT NULL, b TEXT NOT NULL",
        "a, b",
        &["9e999, ''", "9e999, 'a'", "-9e999, char(0)", "0.1, 'a'", "0.30000000000000004, 'b'"],
    ),
    several("a NOT NULL, b NOT NULL", "a, b", &["1, '1'", "'1', 1", "1, x'31'", "0.1, 9e999"])
        .with(" WITHOUT ROWID")
        .unexported("bytes"),
];

const MARIADB_TEXTS: &[&str] = &[
    "''",
    "'a'",
    "'b'",
    "'c d'",
    "x'09'",
    "'null'",
    "'[1]'",
    "'{\"$float\":\"NaN\"}'",
    "'it''s'",
    "repeat('x', 190)",
];

pub(super) const MARIADB: &[Case] = &[
    single(
        "k DOUBLE",
        &[
            "-0e0",
            "0.1e0",
            "0.30000000000000004e0",
            "1e16",
            "1e19",
            "9007199254740993e0",
            "1.7976931348623157e308",
            "-1.7976931348623155e308",
            "2.2250738585072014e-308",
            "123456.78901234567e0",
            "7.2057594037927933e16",
        ],
    ),
    single("k FLOAT", &["0", "0.1", "-0.1", "3.4028234e38", "1.1754944e-38", "16777216"]),
    single(
        "k BIGINT UNSIGNED",
        &["0", "9223372036854775807", "9223372036854775808", "18446744073709551615"],
    ),
    single("k BIGINT", &["-9223372036854775808", "0", "9223372036854775807"]),
    single("k TINYINT(1)", &["-128", "0", "1", "5", "127"]).unexported("true nor false"),
    single(
        "k BIT(64)",
        &[
            "0",
            "1",
            "b'1000000000000000000000000000000000000000000000000000000000000000'",
            "18446744073709551615",
        ],
    ),
    single("k BIT(1)", &["0", "1"]),
    single("k YEAR", &["0", "1901", "2025", "2155"]),
    single(
        "k DECIMAL(65, 30)",
        &[
            "0",
            "1.10",
            "-99999999999999999999999999999999999.999999999999999999999999999999",
            "0.000000000000000000000000000001",
        ],
    ),
    single("k DATE", &["'0001-01-01'", "'1000-01-01'", "'2025-01-31'", "'9999-12-31'"]),
    single(
        "k DATETIME(6)",
        &[
            "'0001-01-01'",
            "'2025-01-31 03:00:00.123456'",
            "'2025-01-31 03:00:00.12345'",
            "'9999-12-31 23:59:59.999999'",
        ],
    ),
    single(
        "k TIMESTAMP(6) NOT NULL",
        &["'1970-01-01 00:00:01'", "'2025-01-31 03:00:00.123456'", "'2038-01-19 03:14:07.999999'"],
    ),
    single(
        "k TIME(6)",
        &[
            "'-838:59:59.999999'",
            "'-00:00:00.000001'",
            "'00:00:00'",
            "'100:00:00'",
            "'23:59:59.5'",
            "'838:59:59.999999'",
        ],
    ),
    single("k VARCHAR(191) COLLATE utf8mb4_general_ci", MARIADB_TEXTS),
    single("k VARCHAR(191) COLLATE utf8mb4_bin", MARIADB_TEXTS),
    single(
        "k VARCHAR(191) COLLATE utf8mb4_nopad_bin",
        &["''", "' '", "'  '", "'a'", "'a '", "x'00'", "'A'"],
    ),
    single("k VARCHAR(191) COLLATE utf8mb4_unicode_520_ci", MARIADB_TEXTS),
    single("k VARCHAR(191) CHARACTER SET latin1", MARIADB_TEXTS),
    single(
        "k VARCHAR(191) CHARACTER SET utf16 COLLATE utf16_bin",
        &["''", "'a'", "'日本'", "repeat('x', 190)"],
    ),
    single(
        "k VARCHAR(760) COLLATE utf8mb4_bin",
        &["repeat('日', 760)", "repeat('x', 760)", "concat(repeat('x', 759), 'y')"],
    ),
    single("k CHAR(5)", &["''", "'a'", "'a b'", "'日本'"]),
    single(
        "k VARBINARY(3000)",
        &["''", "x'00'", "x'0000'", "x'ff'", "repeat(x'00', 3000)", "repeat(x'01ff', 1500)"],
    ),
    single("k BINARY(4)", &["''", "x'01'", "x'ff'", "'ab'"]),
    single(
        "k UUID",
        &[
            "'00000000-0000-0000-0000-000000000000'",
            "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
            "'018f3c2a-0000-7000-8000-000000000001'",
        ],
    ),
    single("k INET6", &["'::'", "'::1'", "'ff02::1'"]),
    several(
        "a DOUBLE, b VARCHAR(20)",
        "a, b",
        &["0.1e0, ''", "0.1e0, 'a'", "1e300, 'a'", "-1e300, 'b'"],
    ),
    several(
        "a TIME(6), b BIGINT UNSIGNED",
        "a, b",
        &["'-01:00:00', 18446744073709551615", "'-01:00:00', 0", "'00:00:00', 1"],
    ),
];
