//! Database servers of a newer Debian, unpacked in a folder of their own. Nothing is installed on this
//! machine, and apt checks Debian's signatures as usual.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::{cargo, python};

/// A server of Debian's unstable suite, which has the newest versions.
pub(crate) struct Package {
    /// Its folder among the unpacked servers.
    folder: &'static str,
    /// The packages to unpack, with everything that they depend on.
    packages: &'static [&'static str],
    /// The programs to start, by their paths in the packages.
    programs: &'static [Program],
}

struct Program {
    path: &'static str,
    /// Whether it is a script, which runs by the shell, or a binary, which needs the libraries beside it.
    is_script: bool,
    /// More arguments. `{base}` is the folder with `bin` and `share`.
    arguments: &'static str,
}

pub(crate) const MYSQL: Package = Package {
    folder: "mysql",
    packages: &["mysql-server-core"],
    programs: &[Program {
        path: "usr/sbin/mysqld",
        is_script: false,
        // The default folder of Debian's build does not exist on this machine.
        arguments: "--basedir={base} --secure-file-priv=NULL",
    }],
};

pub(crate) const MARIADB: Package = Package {
    folder: "mariadb",
    packages: &["mariadb-server-core", "mariadb-client-core"],
    programs: &[
        Program { path: "usr/sbin/mariadbd", is_script: false, arguments: "--basedir={base}" },
        Program { path: "usr/bin/my_print_defaults", is_script: false, arguments: "" },
        Program { path: "usr/bin/resolveip", is_script: false, arguments: "" },
        Program {
            path: "usr/bin/mariadb-install-db",
            is_script: true,
            arguments: "--basedir={base}",
        },
    ],
};

const SUITE: &str = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
                     http://deb.debian.org/debian sid main";

impl Package {
    /// Downloads and unpacks the server unless it is there. Returns the folder of its programs.
    pub(crate) fn install(&self) -> anyhow::Result<PathBuf> {
        let base = cargo::servers()?.join(self.folder);
        // The stamp is written last, so that an interrupted installation starts again.
        let (stamp, wanted) = (base.join("installed"), self.packages.join(" "));
        if !fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            eprintln!("xtask: unpacking {wanted} of Debian sid in {}", base.display());
            if base.exists() {
                fs::remove_dir_all(&base).with_context(|| base.display().to_string())?;
            }
            self.unpack(&base)?;
            self.link(&base)?;
            fs::write(&stamp, wanted).with_context(|| stamp.display().to_string())?;
        }
        Ok(base.join("bin"))
    }

    /// Unpacks the packages into `base/root`.
    fn unpack(&self, base: &Path) -> anyhow::Result<()> {
        let apt = base.join("apt");
        for folder in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(apt.join(folder)).with_context(|| apt.display().to_string())?;
        }
        fs::write(apt.join("sources.list"), format!("{SUITE}\n"))?;
        // No package of this machine counts as installed, so apt downloads all libraries.
        fs::write(apt.join("status"), "")?;
        let path = apt.display();
        let settings = format!(
            "Dir::State \"{path}\";\nDir::State::status \"{path}/status\";\n\
             Dir::Cache \"{path}/cache\";\nDir::Etc::SourceList \"{path}/sources.list\";\n\
             Dir::Etc::SourceParts \"/dev/null\";\nDir::Etc::Preferences \"/dev/null\";\n\
             Dir::Etc::PreferencesParts \"/dev/null\";\nAcquire::Languages \"none\";\n\
             APT::Sandbox::User \"root\";\n"
        );
        let config = apt.join("apt.conf");
        fs::write(&config, settings)?;
        let apt_get = |args: &[&str]| {
            let mut command = Command::new("apt-get");
            python::run(command.env("APT_CONFIG", &config).arg("-qq").args(args))
        };
        apt_get(&["update"])?;
        let install = ["install", "-y", "--download-only", "--no-install-recommends"];
        apt_get(&[&install[..], self.packages].concat())?;
        let archives = fs::read_dir(apt.join("cache/archives"))?;
        for archive in archives {
            let archive = archive?.path();
            // A server does not need it, and it is the largest package.
            let is_perl = archive.file_name().is_some_and(|n| n.to_string_lossy().contains("perl"));
            if archive.extension().is_some_and(|extension| extension == "deb") && !is_perl {
                python::run(Command::new("dpkg").arg("-x").arg(&archive).arg(base.join("root")))?;
            }
        }
        fs::remove_dir_all(&apt).with_context(|| apt.display().to_string())
    }

    /// Makes `base` look like the folder that the programs were built for.
    fn link(&self, base: &Path) -> anyhow::Result<()> {
        let root = base.join("root");
        let loader = loader(&root)?;
        let libraries = loader.parent().context("the loader has no folder")?;
        let bin = base.join("bin");
        fs::create_dir_all(&bin)?;
        symlink("bin", base.join("sbin"))?;
        symlink("root/usr/share", base.join("share"))?;
        symlink("root/usr/lib", base.join("lib"))?;
        for Program { path, is_script, arguments } in self.programs {
            let program = root.join(path);
            ensure!(program.is_file(), "{} does not exist", program.display());
            // The libraries are newer than those of this machine, and so is the loader that fits to them.
            let interpreter = match is_script {
                true => "/bin/sh".to_owned(),
                false => format!("{} --library-path {}", loader.display(), libraries.display()),
            };
            let arguments = arguments.replace("{base}", &base.display().to_string());
            // The options of the caller come first: some must be the first of all.
            let script =
                format!("#!/bin/sh\nexec {interpreter} {} \"$@\" {arguments}\n", program.display());
            let name = program.file_name().context("a program has a name")?;
            let wrapper = bin.join(name);
            fs::write(&wrapper, script)?;
            fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    }
}

/// The program that loads the libraries of a binary, in the folder of these libraries.
fn loader(root: &Path) -> anyhow::Result<PathBuf> {
    for folder in fs::read_dir(root.join("usr/lib"))? {
        let folder = folder?.path();
        for file in fs::read_dir(&folder).into_iter().flatten() {
            let file = file?.path();
            if file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-linux")) {
                return Ok(file);
            }
        }
    }
    anyhow::bail!("{} has no loader", root.display())
}
