//! The host as commands see it that bring no root.

use std::{fs, path::Path};

use sandbox::{Exit, Spec, User};

use super::{alone::alone, scene::Scene};
use crate::scene::shell;

/// As root, which could read whatever is there.
fn as_root(line: &str) -> Spec {
    Spec { user: User { uid: 0, gid: 0 }, ..shell(line) }
}

/// A scene that permits root and binds a directory with a secret and something to read.
fn with_secret(secret: &Path) -> Scene {
    let mut scene = Scene::new();
    fs::create_dir_all(secret.join("keys")).unwrap();
    fs::write(secret.join("keys/node.key"), "our key").unwrap();
    fs::write(secret.join("config.toml"), "our token").unwrap();
    fs::write(secret.join("readme"), "for all").unwrap();
    scene.site.permissions.host_root = true;
    scene.site.host_view.binds.push(secret.to_owned());
    scene.site.host_view.hidden = vec![secret.join("keys"), secret.join("config.toml")];
    scene
}

#[test]
fn host_view_hides_secrets() {
    alone("host_view_hides_secrets", || {
        let dir = tempfile::Builder::new().tempdir_in("/var").unwrap();
        let scene = with_secret(dir.path());
        let at = dir.path().display();
        let seen = scene.run(&as_root(&format!("cat {at}/readme {at}/config.toml; ls {at}/keys")));
        assert_eq!(seen.stdout, "for all", "{seen:?}");

        let secrets = "cat /etc/shadow /etc/shadow- /etc/gshadow /etc/sudoers; \
                       ls /etc/ssh /etc/ssl/private /etc/sudoers.d /etc/kubernetes | grep -v :";
        let seen = scene.run(&as_root(secrets));
        assert_eq!(seen.stdout.trim(), "", "{seen:?}");

        let elsewhere =
            format!("ls -d /root /home /boot /mnt /srv {}", scene.site.data_dir.display());
        let seen = scene.run(&as_root(&elsewhere));
        assert_eq!((seen.stdout.as_str(), seen.exit), ("", Exit::Code(2)), "{seen:?}");
    });
}

/// A data directory below something that is bound is hidden without being asked for.
#[test]
fn our_data_is_hidden_wherever_it_lies() {
    alone("our_data_is_hidden_wherever_it_lies", || {
        let dir = tempfile::Builder::new().tempdir_in("/var").unwrap();
        let mut scene = Scene::new();
        let data = dir.path().join("data");
        fs::create_dir(&data).unwrap();
        fs::write(data.join("host-id"), "ours").unwrap();
        scene.site.data_dir = data.clone();
        scene.site.permissions.host_root = true;
        scene.site.host_view.binds.push(dir.path().to_owned());
        let seen = scene.run(&as_root(&format!("ls {}; echo listed", data.display())));
        assert_eq!(seen.stdout, "listed\n", "{seen:?}");
    });
}

/// Masks were looked for by the path that a bind was given by, and secrets by the path they really
/// have: below a directory that was reached through a link, nothing was hidden.
#[test]
fn secrets_are_hidden_below_a_bind_that_is_reached_through_a_link() {
    alone("secrets_are_hidden_below_a_bind_that_is_reached_through_a_link", || {
        let dir = tempfile::Builder::new().tempdir_in("/var").unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        let mut scene = with_secret(&real.join("shared"));
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let seen_at = link.join("shared");
        scene.site.host_view.binds.pop();
        scene.site.host_view.binds.push(seen_at.clone());
        let at = seen_at.display();
        let seen = scene.run(&as_root(&format!("cat {at}/readme {at}/config.toml; ls {at}/keys")));
        assert_eq!(seen.stdout, "for all", "{seen:?}");
    });
}

#[test]
fn host_view_writes_never_reach_host() {
    alone("host_view_writes_never_reach_host", || {
        let dir = tempfile::Builder::new().tempdir_in("/var").unwrap();
        let scene = with_secret(dir.path());
        let at = dir.path().display();
        let line = format!(
            "touch /usr/x /etc/x /usr/bin/x {at}/x; rm {at}/readme; chmod 777 {at}; \
             mount -o remount,rw /usr; echo changed > /etc/hostname; \
             for dir in / /tmp /var/tmp /run; do echo scratch > $dir/from-the-task || exit 1; done"
        );
        let ran = scene.run(&as_root(&line));
        assert_eq!(ran.exit, Exit::Code(0), "{ran:?}");
        assert!(ran.stderr.matches("Read-only file system").count() >= 6, "{ran:?}");
        for path in ["/usr/x", "/etc/x", "/usr/bin/x", "/from-the-task", "/tmp/from-the-task"] {
            assert!(!Path::new(path).exists(), "{path}");
        }
        assert_eq!(fs::read_to_string(dir.path().join("readme")).unwrap(), "for all");
        assert!(!dir.path().join("x").exists());
    });
}

/// What nobody is: 65534, with no right but to write what is scratch.
#[test]
fn nobody_may_write_scratch() {
    alone("nobody_may_write_scratch", || {
        let line = "for dir in / /tmp /var/tmp /run; do echo scratch > $dir/x || exit 1; done; \
                    mkdir /work && cd /work && echo done > file && cat file";
        let ran = Scene::new().shell(line);
        assert_eq!(ran.stdout, "done\n", "{ran:?}");
    });
}

#[test]
fn links_stay_links() {
    alone("links_stay_links", || {
        let line = "for path in /bin /sbin /lib /lib64; do readlink $path || echo none; done";
        let ours = ["/bin", "/sbin", "/lib", "/lib64"].map(|path| {
            let link = fs::read_link(path).map(|to| to.to_str().unwrap().to_owned());
            link.unwrap_or_else(|_| "none".to_owned())
        });
        let said = Scene::new().shell(line).stdout;
        assert_eq!(said.lines().collect::<Vec<_>>(), ours);
    });
}
