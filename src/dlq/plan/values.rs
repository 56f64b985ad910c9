//! When a config has the value that is asked for.

use crate::kafka::admin::{ConfigChange, Configs};

/// What has to change for `configs` to have all of `wanted`.
pub fn changes<'a>(configs: &Configs, wanted: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<ConfigChange> {
    let differs = |(name, value): &(&str, &str)| !configs.value(name).is_some_and(|is| is_same(is, value));
    let change = |(name, value): (&str, &str)| ConfigChange { name: name.into(), value: Some(value.into()) };
    wanted.into_iter().filter(differs).map(change).collect()
}

/// Brokers answer some values in another spelling than they were given: numbers, booleans, spaces in lists.
fn is_same(is: &str, wanted: &str) -> bool {
    let number = |text: &str| text.trim().parse::<i64>().ok();
    let items = |text: &str| text.split(',').map(|item| item.trim().to_ascii_lowercase()).collect::<Vec<_>>();
    is == wanted || (number(is).is_some() && number(is) == number(wanted)) || items(is) == items(wanted)
}

/// The changes as a reader likes them: `name=value`, separated by commas.
pub fn listed(changes: &[ConfigChange]) -> String {
    let item = |change: &ConfigChange| match &change.value {
        Some(value) => format!("{}={value}", change.name),
        None => format!("{} (default)", change.name),
    };
    changes.iter().map(item).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_makes_no_difference() {
        for (is, wanted, same) in [
            ("5", "5", true),
            ("5", "05", true),
            ("true", "TRUE", true),
            ("delete, compact", "delete,compact", true),
            ("5", "6", false),
            ("", "dlq.orders", false),
            ("delete", "delete,compact", false),
        ] {
            assert_eq!(is_same(is, wanted), same, "{is} and {wanted}");
        }
    }
}
