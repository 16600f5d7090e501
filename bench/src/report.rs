//! The table of results: the measured value, the required value, and whether it is met.

/// The results of one run.
#[derive(Default)]
pub(crate) struct Report {
    lines: Vec<String>,
}

impl Report {
    /// Records a ratio that must be at least `wanted`.
    pub(crate) fn at_least(&mut self, what: &str, ratio: f64, wanted: f64, detail: String) {
        self.line(what, ratio, ">=", wanted, ratio >= wanted, detail);
    }

    /// Records a ratio that must be at most `wanted`.
    pub(crate) fn at_most(&mut self, what: &str, ratio: f64, wanted: f64, detail: String) {
        self.line(what, ratio, "<=", wanted, ratio <= wanted, detail);
    }

    /// Records a ratio without a requirement.
    pub(crate) fn note(&mut self, what: &str, ratio: f64, detail: String) {
        self.push(format!("{what:<44} {ratio:>8.2}  {:<17} {detail}", "-"));
    }

    fn line(&mut self, what: &str, ratio: f64, sign: &str, wanted: f64, met: bool, detail: String) {
        let verdict = if met { "met" } else { "MISSED" };
        self.push(format!("{what:<44} {ratio:>8.2}  {sign} {wanted:<6} {verdict:<7} {detail}"));
    }

    fn push(&mut self, line: String) {
        eprintln!("{line}");
        self.lines.push(line);
    }

    /// Prints the table.
    pub(crate) fn print(&self) {
        println!("\n{:<44} {:>8}  wanted", "figure", "measured");
        for line in &self.lines {
            println!("{line}");
        }
    }
}
