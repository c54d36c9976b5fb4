//! Placement policies as the command line names them: three independent axes.
//!
//! `relation=hints,stream=none` sets axes by name; a bare value names its axis where
//! only one axis has it. A bare `none` means no relation and no stream policy and
//! leaves the class axis to the preset.

use flashwise_ssd::{RelationPolicy, did_you_mean};

/// A choice on every axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// As it was given.
    pub name: String,
    /// What is done with append and overwrite hints.
    pub relation: RelationPolicy,
}

/// A policy that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// No axis has this value.
    #[error("--policy {given}: no policy «{value}»{hint}; there are {known}")]
    Unknown {
        /// The whole argument.
        given: String,
        /// The part that is not known.
        value: String,
        /// Did you mean.
        hint: String,
        /// What there is.
        known: String,
    },
    /// One axis set twice.
    #[error("--policy {given}: «{axis}» is set twice; separate policies by separate --policy")]
    Twice {
        /// The whole argument.
        given: String,
        /// Axis.
        axis: String,
    },
}

/// Values of the stream axis so far.
const STREAMS: [&str; 1] = ["none"];

impl Policy {
    /// No placement policy.
    pub fn none() -> Self {
        Self { name: "none".to_owned(), relation: RelationPolicy::None }
    }

    /// Reads a `--policy` argument.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let mut policy = Self { name: text.to_owned(), relation: RelationPolicy::None };
        let mut set: Vec<&str> = vec![];
        for part in text.split(',').map(str::trim) {
            let (axis, value) = match part.split_once('=') {
                Some((axis, value)) => (axis.trim(), value.trim()),
                None => (axis_of(part).ok_or_else(|| unknown(text, part))?, part),
            };
            if set.contains(&axis) {
                let (given, axis) = (text.to_owned(), axis.to_owned());
                return Err(PolicyError::Twice { given, axis });
            }
            set.push(axis);
            match axis {
                "relation" => {
                    let found = RelationPolicy::ALL.iter().find(|(name, _)| *name == value);
                    policy.relation = found.ok_or_else(|| unknown(text, part))?.1;
                }
                "stream" if STREAMS.contains(&value) => {}
                // A bare `none`: no relation, no stream.
                "none" => {}
                _ => return Err(unknown(text, part)),
            }
        }
        Ok(policy)
    }
}

/// The axis a bare value names.
fn axis_of(value: &str) -> Option<&'static str> {
    if value == "none" {
        return Some("none");
    }
    RelationPolicy::ALL.iter().any(|(name, _)| *name == value).then_some("relation")
}

fn unknown(given: &str, value: &str) -> PolicyError {
    let relations = RelationPolicy::ALL.map(|(name, _)| format!("relation={name}"));
    let streams = STREAMS.map(|name| format!("stream={name}"));
    let known: Vec<String> = relations.into_iter().chain(streams).collect();
    let bare = known.iter().filter_map(|k| k.split_once('=').map(|(_, v)| v));
    let hint = did_you_mean(value, known.iter().map(String::as_str).chain(bare));
    PolicyError::Unknown {
        given: given.to_owned(),
        value: value.to_owned(),
        hint,
        known: known.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_named_or_understood() {
        let relation = |text: &str| Policy::parse(text).map(|p| p.relation);
        assert_eq!(relation("none"), Ok(RelationPolicy::None));
        assert_eq!(relation("hints"), Ok(RelationPolicy::Hints));
        assert_eq!(relation("chain"), Ok(RelationPolicy::Chain));
        assert_eq!(relation("relation=hints,stream=none"), Ok(RelationPolicy::Hints));
        assert_eq!(relation(" stream = none , relation = none "), Ok(RelationPolicy::None));
    }

    #[test]
    fn what_does_not_exist_is_named_with_what_does() {
        let message = |text: &str| Policy::parse(text).unwrap_err().to_string();
        let hint = message("hnts");
        assert!(hint.contains("«hnts»; did you mean «hints»?"), "{hint}");
        assert!(
            message("relation=fast")
                .contains("relation=none, relation=hints, relation=chain, stream=none")
        );
        assert!(message("class=tlc").contains("class=tlc"));
        assert!(message("relation=hints,relation=none").contains("«relation» is set twice"));
        assert!(Policy::parse("").is_err());
    }
}
