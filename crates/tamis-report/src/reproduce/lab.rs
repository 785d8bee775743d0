//! Runs experiments: trials with fixed seeds, on all processors. Each is written down as soon as
//! it is done, so that a run that was stopped can go on.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tamis::Hasher;

/// What may go wrong in a trial.
pub type Trouble = Box<dyn Error + Send + Sync>;

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// As little as possible, for tests: every row, with wide intervals.
    Least,
    /// A minute on two processors: enough trials so that no row is weak.
    Quick,
    /// As many trials as narrow intervals need, and rates that a quick run leaves out: under an
    /// hour and a half.
    Full,
}

impl Effort {
    /// The value for this effort.
    pub fn pick<T>(self, least: T, quick: T, full: T) -> T {
        match self {
            Self::Least => least,
            Self::Quick => quick,
            Self::Full => full,
        }
    }
}

/// An experiment: trials of one function of a seed.
pub struct Experiment {
    /// The name by which its results are found.
    name: String,
    /// Everything but the seed and this program that affects the result of a trial and differs
    /// from run to run.
    setup: u64,
    trials: u64,
    /// Seconds of one processor for a trial, roughly. Only the estimate of the time left depends
    /// on it.
    cost: f64,
    run: Box<dyn Fn(u64) -> Result<Value, Trouble> + Send + Sync>,
}

impl Experiment {
    /// An experiment of `trials` trials. `cost` is the seconds of one processor for a trial,
    /// roughly.
    pub fn new<T: Serialize>(
        name: impl Into<String>,
        trials: u64,
        cost: f64,
        run: impl Fn(u64) -> Result<T, Trouble> + Send + Sync + 'static,
    ) -> Self {
        let run = move |seed| Ok(serde_json::to_value(run(seed)?)?);
        Self { name: name.into(), setup: 0, trials, cost, run: Box::new(run) }
    }

    /// The same, where trials differ from run to run: `setup` tells them apart.
    #[must_use]
    pub fn with_setup(mut self, setup: u64) -> Self {
        self.setup = setup;
        self
    }
}

/// The results of all experiments, by name and in the order of the seeds.
#[derive(Debug, Default)]
pub struct Results(HashMap<String, Vec<Value>>);

impl Results {
    /// Whether this experiment was part of the run.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The results of one experiment.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<T>, Trouble> {
        let values = self.0.get(name).ok_or_else(|| format!("no experiment {name:?} was run"))?;
        values.iter().map(|value| Ok(T::deserialize(value)?)).collect()
    }
}

/// Where trials are run and kept.
#[derive(Clone, Debug)]
pub struct Lab {
    /// A folder for finished trials. Without one, a run that was stopped starts anew.
    pub folder: Option<PathBuf>,
    /// A number that identifies the program. Results of another program are not used.
    pub program: u64,
}

impl Lab {
    /// Runs the trials that have not been run. Calls `progress` with the share that is done, by
    /// the costs of trials. Of experiments with the same name, only the first is run.
    pub fn run(
        &self,
        mut experiments: Vec<Experiment>,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Results, Trouble> {
        let mut names = HashSet::new();
        experiments.retain(|experiment| names.insert(experiment.name.clone()));
        let experiments = &experiments;
        let mut journals = Vec::new();
        for experiment in experiments {
            journals.push(self.open(experiment)?);
        }
        let open = |index: usize| {
            let journal: &Journal = &journals[index];
            (0..experiments[index].trials).filter(|seed| !journal.done.contains_key(seed))
        };
        let mut tasks: Vec<(usize, u64)> = (0..experiments.len())
            .flat_map(|index| open(index).map(move |seed| (index, seed)))
            .collect();
        // The longest first, so that none of them runs alone at the end.
        tasks.sort_by(|a, b| experiments[b.0].cost.total_cmp(&experiments[a.0].cost));
        let whole: f64 = tasks.iter().map(|task| experiments[task.0].cost).sum();

        let next = AtomicUsize::new(0);
        let (send, receive) = mpsc::channel();
        let worker = |send: mpsc::Sender<(usize, u64, f64, Result<Value, Trouble>)>| {
            while let Some(&(index, seed)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                let start = Instant::now();
                let result = (experiments[index].run)(seed);
                // After an error the receiver is gone.
                if send.send((index, seed, start.elapsed().as_secs_f64(), result)).is_err() {
                    return;
                }
            }
        };
        thread::scope(|scope| {
            let threads = thread::available_parallelism().map_or(1, usize::from);
            for _ in 0..threads {
                let send = send.clone();
                let worker = &worker;
                scope.spawn(move || worker(send));
            }
            drop(send);
            let mut done = 0.0;
            let written = receive.iter().try_for_each(|(index, seed, seconds, result)| {
                journals[index].write(seed, result?, seconds)?;
                done += experiments[index].cost;
                progress(done / whole);
                Ok::<(), Trouble>(())
            });
            drop(receive);
            written
        })?;
        let results = experiments.iter().zip(journals);
        Ok(Results(
            results
                .map(|(experiment, mut journal)| {
                    let seeds = 0..experiment.trials;
                    let values = seeds.filter_map(|seed| journal.done.remove(&seed)).collect();
                    (experiment.name.clone(), values)
                })
                .collect(),
        ))
    }

    fn open(&self, experiment: &Experiment) -> io::Result<Journal> {
        let Some(folder) = &self.folder else { return Ok(Journal::default()) };
        fs::create_dir_all(folder)?;
        // The number of trials is not part of the name: a longer run goes on from a shorter one.
        let title = format!("{:016x} {} {}", self.program, experiment.name, experiment.setup);
        let short: String = experiment.name.chars().take_while(|&c| c != ' ').collect();
        let digest = Hasher::default().digest(&title).0;
        Journal::open(&folder.join(format!("{short}-{digest:016x}.jsonl")), &title)
    }
}

/// The trials of one experiment that are done, in memory and on disk.
#[derive(Default)]
struct Journal {
    done: HashMap<u64, Value>,
    file: Option<File>,
}

impl Journal {
    /// The first line names what the trials belong to; each other line is a seed, its result and
    /// the seconds it took. A line that was cut off is ignored.
    fn open(path: &Path, title: &str) -> io::Result<Self> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let known = lines.next() == Some(title);
        let parse = |line| serde_json::from_str::<(u64, Value, f64)>(line).ok();
        let kept: Vec<&str> =
            if known { lines.filter(|&line| parse(line).is_some()).collect() } else { Vec::new() };
        let done = kept.iter().filter_map(|line| parse(line)).map(|(seed, value, _)| (seed, value));
        let done = done.collect();
        // Written to a new file first, so that nothing is appended to half a line and nothing is
        // lost if the program stops.
        let anew = path.with_extension("anew");
        let mut file = File::create(&anew)?;
        let whole: String =
            [title].into_iter().chain(kept).map(|line| line.to_owned() + "\n").collect();
        file.write_all(whole.as_bytes())?;
        fs::rename(&anew, path)?;
        Ok(Self { done, file: Some(file) })
    }

    fn write(&mut self, seed: u64, value: Value, seconds: f64) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            let line = serde_json::json!([seed, value, seconds]).to_string() + "\n";
            file.write_all(line.as_bytes())?;
        }
        self.done.insert(seed, value);
        Ok(())
    }
}
