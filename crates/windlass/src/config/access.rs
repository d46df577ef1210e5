//! Who may ask over HTTP, by `--cors` and `--host-whitelist`.

use store::HttpAccess;

use super::{Error, Settings};

const ANY: &str = "*";

pub(crate) fn of(settings: &Settings) -> Result<HttpAccess, Error> {
    let origins = settings.list("cors");
    if let Some(wrong) = origins.iter().find(|origin| !is_origin(origin)) {
        return Err(Error::BadValue {
            origin: settings.origin("cors"),
            value: (*wrong).to_owned(),
            expected: "origins such as `https://example.com`, or `*`".into(),
        });
    }
    let owned = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect();
    let (origins, hosts) = (owned(origins), owned(settings.list("host-whitelist")));
    Ok(HttpAccess { origins, hosts, ..HttpAccess::default() })
}

/// As browsers write it: a scheme and a host, a port unless it is the usual one, and no path.
fn is_origin(text: &str) -> bool {
    text == ANY
        || text.split_once("://").is_some_and(|(scheme, host)| {
            matches!(scheme, "http" | "https") && !host.is_empty() && !host.contains('/')
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::serve::tests::settings;

    #[test]
    fn origins_are_written_as_browsers_do() {
        for (line, expected) in [
            ("", Ok(vec!["*"])),
            ("--cors=", Ok(vec![])),
            (
                "--cors http://localhost:3000,https://a.example",
                Ok(vec!["http://localhost:3000", "https://a.example"]),
            ),
            ("--cors localhost", Err("--cors: invalid value `localhost`")),
            (
                "--cors https://a.example/page",
                Err("--cors: invalid value `https://a.example/page`"),
            ),
        ] {
            let actual = of(&settings(line)).map(|access| access.origins);
            let expected = expected
                .map(|words: Vec<&str>| words.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(actual.map_err(|error| error.to_string()), expected.map_err(str::to_owned));
        }
    }
}
