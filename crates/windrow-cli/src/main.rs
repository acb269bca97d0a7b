//! The program `windrow`.

mod args;
mod output;
mod progress;
mod prompt;
mod script;

use std::io::{IsTerminal, Read, stdin, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use args::{Arguments, Command, RunArguments, SqlArguments};
use output::Printer;
use progress::Progress;
use script::Script;
use windrow::{Engine, EngineError, ScriptError};

fn main() -> ExitCode {
    let arguments = Arguments::read();
    start_logging();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return failure(&Failure::System("start", error)),
    };
    let outcome = runtime.block_on(async {
        match &arguments.command {
            Command::Run(run) => run_file(run).await,
            Command::Sql(sql) => run_sql(sql).await,
        }
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure(&error),
    }
}

/// Why the program ends with an error.
enum Failure {
    /// A statement failed.
    Script(ScriptError),
    /// The engine could not be opened, or a refresh failed.
    Engine(EngineError),
    /// The system failed.
    System(&'static str, std::io::Error),
    /// A file could not be read.
    File(String, std::io::Error),
}

fn failure(failure: &Failure) -> ExitCode {
    match failure {
        Failure::Script(error) => eprintln!("error: {error}"),
        Failure::Engine(error) => eprintln!("error: {error}"),
        // A pipe that nobody reads any more (`windrow … | head`) is no failure of ours to report.
        Failure::System(_, error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        Failure::System(what, error) => eprintln!("error: cannot {what}: {error}"),
        Failure::File(path, error) => eprintln!("error: cannot read {path}: {error}"),
    }
    ExitCode::FAILURE
}

fn start_logging() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("WINDROW_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("error"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}

async fn open(data_dir: Option<&Path>, tables: Option<&str>) -> Result<Engine, Failure> {
    let Some(dir) = data_dir else { return Ok(Engine::in_memory()) };
    let mut builder = Engine::builder();
    if let Some(location) = tables {
        builder = builder.tables_at(location);
    }
    builder.open(dir).await.map_err(Failure::Engine)
}

async fn run_file(arguments: &RunArguments) -> Result<(), Failure> {
    let text = std::fs::read_to_string(&arguments.file)
        .map_err(|error| Failure::File(arguments.file.display().to_string(), error))?;
    let engine = open(arguments.data_dir.as_deref(), arguments.tables.as_deref()).await?;
    let progress = Progress::over(&text);
    let printer = Printer::new(arguments.output, progress.clone());
    engine.on_refresh(printer.refresh_listener());
    engine.on_rows_loaded(progress.rows_listener());
    let mut script =
        Script { engine: &engine, printer: &printer, progress: &progress, manual: arguments.manual };
    // What a data directory's flows have not seen yet comes first.
    script.refresh().await?;
    script.run(&text).await?;
    progress.finish();
    if arguments.watch {
        watch(&engine, &printer).await?;
    }
    Ok(())
}

async fn watch(engine: &Engine, printer: &Printer) -> Result<(), Failure> {
    let tasks = engine.spawn_flows();
    printer.note(&format!("{} flows are kept fresh; Ctrl-C ends", tasks.len()));
    tokio::signal::ctrl_c().await.map_err(|error| Failure::System("wait for Ctrl-C", error))?;
    for task in tasks {
        task.stop(Duration::from_secs(10)).await;
    }
    Ok(())
}

async fn run_sql(arguments: &SqlArguments) -> Result<(), Failure> {
    let engine = open(arguments.data_dir.as_deref(), arguments.tables.as_deref()).await?;
    let progress = Progress::hidden();
    let printer = Printer::new(arguments.output, progress.clone());
    let mut script = Script { engine: &engine, printer: &printer, progress: &progress, manual: false };
    script.refresh().await?;
    if let Some(text) = &arguments.command {
        return script.run(text).await;
    }
    if stdin().is_terminal() && stdout().is_terminal() {
        return prompt::read_and_run(script, arguments.data_dir.as_deref()).await;
    }
    let mut text = String::new();
    stdin().read_to_string(&mut text).map_err(|error| Failure::System("read the statements", error))?;
    script.run(&text).await
}
