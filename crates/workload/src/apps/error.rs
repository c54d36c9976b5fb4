//! What can be wrong with the text that names an application.

/// Why a text such as `varmail,files=20000` names no application that can run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppError {
    /// No application has that name.
    #[error("unknown application «{found}»{}; expected one of: {known}", hint(suggestion))]
    UnknownApp {
        /// What was typed.
        found: Box<str>,
        /// The nearest name.
        suggestion: Option<&'static str>,
        /// All names.
        known: Box<str>,
    },

    /// The application has no such key.
    #[error("{app}: unknown key «{found}»{}; expected one of: {known}", hint(suggestion))]
    UnknownKey {
        /// The application.
        app: &'static str,
        /// What was typed.
        found: Box<str>,
        /// The nearest key.
        suggestion: Option<&'static str>,
        /// All keys of this application.
        known: Box<str>,
    },

    /// A part between commas is no setting.
    #[error(
        "{app}: found «{found}», expected KEY=VALUE, such as {example}; separate settings \
             with one comma"
    )]
    Setting {
        /// The application.
        app: &'static str,
        /// What was typed.
        found: Box<str>,
        /// A setting it has.
        example: Box<str>,
    },

    /// A key is set twice.
    #[error("{app}: {key} is set twice; expected each key once, remove one of them")]
    Twice {
        /// The application.
        app: &'static str,
        /// The key.
        key: &'static str,
    },

    /// A value is not of the form or the size its key asks for.
    #[error("{app}: {key}: found «{found}», expected {expected}; change it or leave it out")]
    Value {
        /// The application.
        app: &'static str,
        /// The key.
        key: &'static str,
        /// What was typed.
        found: Box<str>,
        /// What it should be.
        expected: Box<str>,
    },

    /// Two values do not go together.
    #[error("{app}: {key}={found} does not go with {other}; expected {expected}")]
    Together {
        /// The application.
        app: &'static str,
        /// The key to change.
        key: &'static str,
        /// Its value.
        found: Box<str>,
        /// The other setting.
        other: Box<str>,
        /// What would do.
        expected: Box<str>,
    },
}

fn hint(suggestion: &Option<&'static str>) -> String {
    match suggestion {
        Some(name) => format!(", did you mean `{name}`?"),
        None => String::new(),
    }
}
