//! `windlass sharder simulate`.

use std::str::FromStr;

use sharding::{
    admin::simulate::{Moved, Simulated},
    core::{
        lease::{WEIGHT_DEFAULT, WEIGHT_MAX},
        names::InstanceId,
        partition::Share,
        simulate::Change,
    },
};

use super::connect;
use crate::{
    cli::sharder::SimulateArgs,
    commands::kube::print,
    report::{Exit, Failure, Outcome},
};

pub(super) async fn run(arguments: SimulateArgs) -> Outcome {
    let changes = changes(&arguments)?;
    let admin = connect::admin(&arguments.cluster).await?;
    let simulated = admin.simulate(&arguments.ring, &changes).await.map_err(connect::failure)?;
    print::answer(&simulated, arguments.output, text)
}

/// Who leaves makes room before others join.
fn changes(arguments: &SimulateArgs) -> Result<Vec<Change>, Failure> {
    let leaves = arguments.leaves.iter().map(|text| Ok(Change::Leave(id("--leave", text)?)));
    let joins = arguments.joins.iter().map(|text| {
        let (name, weight) = text.split_once(':').unwrap_or((text, ""));
        let weight =
            if text.contains(':') { self::weight("--join", weight)? } else { WEIGHT_DEFAULT };
        Ok(Change::Join(Share { id: id("--join", name)?, weight }))
    });
    let weights = arguments.weights.iter().map(|text| {
        let (name, weight) = text.split_once('=').unwrap_or((text, ""));
        let weight = self::weight("--weight", weight)?;
        Ok(Change::Weigh(Share { id: id("--weight", name)?, weight }))
    });
    leaves.chain(joins).chain(weights).collect()
}

fn id(flag: &str, text: &str) -> Result<InstanceId, Failure> {
    InstanceId::from_str(text).map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("{flag}: no id of an instance"));
        Failure::new(Exit::Usage, error).with_hint("an id is the name of the instance's Lease")
    })
}

fn weight(flag: &str, text: &str) -> Result<u32, Failure> {
    let weight = text.parse().ok().filter(|weight| *weight <= WEIGHT_MAX);
    weight.ok_or_else(|| {
        let error = anyhow::anyhow!("{flag}: `{text}` is no weight from 0 to {WEIGHT_MAX}");
        Failure::new(Exit::Usage, error)
            .with_hint("write `--join site-3:200`, `--weight site-1=50`")
    })
}

fn text(simulated: &Simulated) -> String {
    let Simulated { ring, objects, moves, imbalance_before, imbalance_after, writes } = simulated;
    let moved: u64 = moves.iter().map(|it| it.objects).sum();
    let percent = moved.saturating_mul(100).checked_div(*objects).unwrap_or(0);
    let row =
        |it: &Moved| [it.from.clone(), it.to.clone(), it.slots.to_string(), it.objects.to_string()];
    let table = match moves.as_slice() {
        [] => "nothing would move".to_owned(),
        moves => print::table(["FROM", "TO", "SLOTS", "OBJECTS"], moves.iter().map(row)),
    };
    format!(
        "{table}\n
ring      {ring}
moved     {moved} of {objects} objects ({percent} %)
max/mean  {imbalance_before:.2} before, {imbalance_after:.2} after
writes    about {writes}; owned objects come on top"
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: SimulateArgs,
    }

    fn parse(joins: &[&str], leaves: &[&str], weights: &[&str]) -> Result<Vec<Change>, String> {
        let flag = |name: &'static str, values: &[&str]| -> Vec<String> {
            values.iter().flat_map(|value| [name.to_owned(), (*value).to_owned()]).collect()
        };
        let mut line = vec!["simulate".to_owned(), "websites".to_owned()];
        line.extend(flag("--join", joins));
        line.extend(flag("--leave", leaves));
        line.extend(flag("--weight", weights));
        changes(&Line::parse_from(line).arguments).map_err(|failure| format!("{failure:?}"))
    }

    fn share(id: &str, weight: u32) -> Share {
        Share { id: id.parse().unwrap(), weight }
    }

    #[test]
    fn changes_are_read_as_they_are_meant() {
        let changes = parse(&["c", "d:50"], &["a"], &["b=0"]).unwrap();
        assert_eq!(
            changes,
            [
                Change::Leave("a".parse().unwrap()),
                Change::Join(share("c", 100)),
                Change::Join(share("d", 50)),
                Change::Weigh(share("b", 0)),
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_names_its_flag() {
        for (joins, weights, flag) in [
            (vec!["C"], vec![], "--join"),
            (vec!["c:"], vec![], "--join"),
            (vec!["c:1001"], vec![], "--join"),
            (vec![], vec!["b"], "--weight"),
            (vec![], vec!["b=-1"], "--weight"),
        ] {
            let refused = parse(&joins, &[], &weights).unwrap_err();
            assert!(refused.contains(flag), "{refused}");
        }
    }
}
