//! The operator's program.

use clap::{Parser, Subcommand};
use redrive::api;
use redrive::context::Config;
use redrive::operator::{manager, telemetry};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Kubernetes operator for the dead-letter queues of Kafka share groups.
#[derive(Parser)]
#[command(name = "redrive", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the operator
    Run(Box<Config>),
    /// Print the CustomResourceDefinitions
    Crds {
        /// Write one file per CRD into this folder instead
        #[arg(long, value_name = "DIR")]
        write: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Run(config) => run(*config),
        Command::Crds { write: Some(folder) } => write_crds(&folder),
        Command::Crds { write: None } => print_crds(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("redrive: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(config: Config) -> Result<(), Box<dyn Error>> {
    telemetry::start(config.log_format);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ran = runtime.block_on(manager::run(config));
    // Blocking work of the Kafka client may outlast its task; it must not outlast the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(ran?)
}

fn print_crds() -> Result<(), Box<dyn Error>> {
    print!("{}", api::crds_yaml()?);
    Ok(())
}

fn write_crds(folder: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    for (name, yaml) in api::crd_files()? {
        fs::write(folder.join(name), yaml)?;
    }
    Ok(())
}
