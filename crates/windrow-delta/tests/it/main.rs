//! What a Delta table does, seen from outside.

#[cfg(test)]
mod cleaning;
#[cfg(test)]
mod committing;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod deletions;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod foreign;
#[cfg(test)]
mod history;
#[cfg(test)]
mod honoured;
#[cfg(test)]
mod mapping;
#[cfg(test)]
mod pruning;
#[cfg(test)]
mod types;
