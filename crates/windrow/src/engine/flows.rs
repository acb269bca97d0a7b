//! `CREATE FLOW` and `DROP FLOW`: from a statement to a flow that can run.

use std::collections::BTreeMap;
use std::sync::Arc;

use windrow_plan::{Merge, NotMergeable, SinkColumns, SinkMatch, derive_sink};
use windrow_runner::{Flow, FlowDefinition, FlowTables, now_millis};
use windrow_state::{Approach, EvalSchedule};
use windrow_table::{MergeMode, SinkTable};

use super::declaration::{FlowDeclaration, TableDeclaration};
use super::flow_options::{duration, flow_options};
use super::flow_query::fits;
use super::registry::{FlowEntry, TableEntry, full_reference, local_name};
use super::tables::exists;
use super::{Answer, EngineError, Inner};
use crate::sql::{CreateFlow, TableName};

impl Inner {
    pub(super) async fn create_flow(&self, create: &CreateFlow) -> Result<Answer, EngineError> {
        let _changing = self.changing.lock().await;
        let known = self.registry.read().flow(&create.name).is_some();
        if known && !create.or_replace {
            return exists(create.if_not_exists, "flow", &create.name);
        }
        self.refuse_uncomputable(create).await?;
        let declaration = FlowDeclaration {
            name: create.name.clone(),
            sql: CreateFlow { or_replace: false, if_not_exists: false, ..create.clone() }.to_string(),
            id: new_id(&create.name),
            created_millis: now_millis(),
            state_format: None,
        };
        let (entry, new_sink) = self.build_flow(create, declaration).await?;
        let sink = create.sink.table.clone();
        let made_sink = new_sink.is_some();
        if let Some(table) = new_sink {
            self.add_table(&sink, table)?;
        }
        let before = self.registry.read().flows.clone();
        self.put_flow(entry);
        if let Err(error) = self.save_catalog() {
            self.registry.write().flows = before;
            if made_sink {
                self.forget_table(&sink)?;
            }
            return Err(error);
        }
        let verb = if known { "replaced" } else { "created" };
        Ok(Answer::done(format!("{verb} flow {} into {}", create.name, create.sink)))
    }

    /// In the place of a flow of the same name, or as the newest one.
    pub(super) fn put_flow(&self, entry: FlowEntry) {
        let mut entries = self.registry.write();
        let same = entries.flows.iter().position(|known| known.declaration.name == entry.declaration.name);
        match same {
            Some(index) => entries.flows[index] = entry,
            None => entries.flows.push(entry),
        }
    }

    /// The whole flow, ready to run, and its sink where that has to be made. Nothing is changed.
    pub(super) async fn build_flow(
        &self,
        create: &CreateFlow,
        mut declaration: FlowDeclaration,
    ) -> Result<(FlowEntry, Option<TableEntry>), EngineError> {
        local_name(&create.sink)?;
        let mut options = flow_options(&create.options)?;
        options.expire_after = duration("EXPIRE AFTER", create.expire_after)?;
        options.schedule = duration("EVAL INTERVAL", create.eval_interval)?.and_then(|interval| {
            EvalSchedule::new(declaration.created_millis, i64::try_from(interval.as_millis()).ok()?)
        });
        if create.eval_interval.is_some() && options.schedule.is_none() {
            return Err(EngineError::Option("EVAL INTERVAL must be at least one millisecond".into()));
        }
        let query = self.plan_flow_query(create).await?;
        self.refuse_cycles(create, &query.reads)?;
        if query.window.is_none() && options.expire_after.is_some() {
            return Err(EngineError::Refused(
                "EXPIRE AFTER needs a query with a time window: without one the whole result is replaced"
                    .into(),
            ));
        }

        let merge = self.how_to_merge(&query).await?;
        refuse_unmergeable(options.approach, &merge)?;

        // A sink is made last, when nothing else can be wrong.
        let states = match (&merge, options.approach) {
            (_, Approach::Recompute) | (Err(_), _) => 0,
            (Ok(merge), _) => merge.states(),
        };
        let derived = derive_sink(&query.plan, query.window.as_ref(), states);
        let (sink, new_sink) = self.sink_for(create, &derived).await?;
        let spec = sink.spec();
        let columns = SinkColumns {
            schema: Arc::clone(spec.schema()),
            time_index: spec.time_index(),
            primary_key: spec.primary_key().to_vec(),
        };
        let matched = SinkMatch::new(
            query.plan.schema().as_arrow(),
            query.window.as_ref(),
            &columns,
            spec.merge_mode() == MergeMode::LastNonNull,
        )?;
        matched.align(query.plan.clone())?;
        if matches!(merge, Ok(Merge::Append)) && spec.row_key().is_some() {
            return Err(EngineError::Refused(format!(
                "the sink {} keeps one row of each key, and a query without GROUP BY gives any number of them",
                create.sink
            )));
        }
        let merge = merge.and_then(|merge| fits(merge, &query, &matched));
        let state_format = merge.as_ref().ok().and_then(Merge::state_format);
        if declaration.state_format.is_some() && declaration.state_format != state_format {
            // The states in the sink are of another version: nothing is merged into them, everything is computed anew.
            declaration.id = new_id(&create.name);
        }
        declaration.state_format = state_format;
        refuse_unmergeable(options.approach, &merge)?;
        if let Some(window) = &query.window
            && (spec.time_index().is_none() || matched.column_of(window.output()) != spec.time_index())
        {
            let output = query.plan.schema().field(window.output()).name().clone();
            return Err(EngineError::Refused(format!(
                "the time window {output} must go into the time index of the sink {}, which is {}",
                create.sink,
                spec.time_index_name().unwrap_or("missing")
            )));
        }
        let definition = FlowDefinition {
            name: create.name.clone(),
            id: declaration.id.clone(),
            query: query.plan,
            sink: full_reference(&create.sink.table),
            matched,
            window: query.window,
            merge,
            options,
        };
        let tables = FlowTables { sources: query.sources, sink };
        let flow = Arc::new(Flow::new(definition, tables, Arc::clone(&self.executor)));
        let create = Arc::new(create.clone());
        Ok((FlowEntry { flow, create, declaration, reads: query.reads, last_tick: None }, new_sink))
    }

    /// A flow must not read what it writes, directly or through other flows.
    fn refuse_cycles(&self, create: &CreateFlow, reads: &[String]) -> Result<(), EngineError> {
        let entries = self.registry.read();
        let mut waiting: Vec<String> = reads.to_vec();
        let mut seen = Vec::new();
        while let Some(table) = waiting.pop() {
            if table == create.sink.table {
                return Err(EngineError::Refused(format!(
                    "the flow {} would read its own sink {}",
                    create.name, create.sink
                )));
            }
            if seen.contains(&table) {
                continue;
            }
            if let Some(upstream) = entries.flow_into(&table).filter(|e| e.declaration.name != create.name) {
                waiting.extend(upstream.reads.iter().cloned());
            }
            seen.push(table);
        }
        Ok(())
    }

    /// The sink that is there, or a new one with the derived columns.
    async fn sink_for(
        &self,
        create: &CreateFlow,
        derived: &SinkColumns,
    ) -> Result<(Arc<dyn SinkTable>, Option<TableEntry>), EngineError> {
        let name = &create.sink.table;
        {
            let entries = self.registry.read();
            if let Some(owner) = entries.flow_into(name).filter(|e| e.declaration.name != create.name) {
                return Err(EngineError::Refused(format!(
                    "the table {} is the sink of the flow {} already",
                    create.sink, owner.declaration.name
                )));
            }
            if let Some(entry) = entries.tables.get(name) {
                let table = entry.own().ok_or_else(|| {
                    EngineError::Refused(format!(
                        "{} is an external table, and cannot be a sink",
                        create.sink
                    ))
                })?;
                return Ok((Arc::clone(table), None));
            }
        }
        let column = |index: usize| derived.schema.field(index).name().clone();
        let declaration = TableDeclaration {
            name: name.clone(),
            schema: derived.schema.as_ref().clone(),
            time_index: derived.time_index.map(column),
            primary_key: derived.primary_key.iter().map(|&index| column(index)).collect(),
            append_mode: false,
            last_non_null: false,
            defaults: BTreeMap::new(),
            retention: create.options.get("sink_retention").cloned(),
            at: None,
            folder: None,
        };
        let entry = self.make_table(declaration).await?;
        let sink = entry.own().cloned().ok_or_else(|| EngineError::NoTable(name.clone()))?;
        Ok((sink, Some(entry)))
    }

    pub(super) async fn drop_flow(&self, name: &str, if_exists: bool) -> Result<Answer, EngineError> {
        let _changing = self.changing.lock().await;
        let before = self.registry.read().flows.clone();
        if self.registry.read().flow(name).is_none() {
            if if_exists {
                return Ok(Answer::done(format!("there is no flow {name}")));
            }
            return Err(EngineError::NoFlow(name.to_owned()));
        }
        self.registry.write().flows.retain(|entry| entry.declaration.name != name);
        if let Err(error) = self.save_catalog() {
            self.registry.write().flows = before;
            return Err(error);
        }
        Ok(Answer::done(format!("dropped flow {name}; its sink stays")))
    }

    /// `flow` and the flows that its sources are kept by, those first.
    pub(super) fn upstream_first(&self, flow: &str) -> Vec<String> {
        let entries = self.registry.read();
        let mut order: Vec<String> = Vec::new();
        let mut waiting = vec![flow.to_owned()];
        while let Some(name) = waiting.pop() {
            let Some(entry) = entries.flow(&name) else { continue };
            // A flow that several paths lead to moves before all of them.
            order.retain(|known| *known != name);
            order.push(name);
            waiting.extend(
                entry
                    .reads
                    .iter()
                    .filter_map(|table| Some(entries.flow_into(table)?.declaration.name.clone())),
            );
        }
        order.reverse();
        order
    }

    /// The flows to be refreshed now: all without a schedule, and those for which a time has come.
    pub(super) fn due_flows(&self) -> Vec<Arc<Flow>> {
        let now = now_millis();
        let mut entries = self.registry.write();
        let due = entries.flows.iter_mut().filter_map(|entry| {
            if let Some(schedule) = entry.flow.definition().options.schedule {
                let tick = schedule.newest_due(now)?;
                if entry.last_tick.is_some_and(|last| last >= tick) {
                    return None;
                }
                entry.last_tick = Some(tick);
            }
            Some(Arc::clone(&entry.flow))
        });
        due.collect()
    }
}

fn new_id(name: &str) -> String {
    format!("{name}/{}", uuid::Uuid::new_v4().simple())
}

/// An author who insists on merging is told why it cannot be.
fn refuse_unmergeable(
    approach: Approach,
    merge: &Result<Merge, Vec<NotMergeable>>,
) -> Result<(), EngineError> {
    let (Approach::Merge, Err(reasons)) = (approach, merge) else { return Ok(()) };
    let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    Err(EngineError::Refused(format!("'refresh' = 'merge' cannot be: {}", reasons.join("; "))))
}

/// The table name of a flow's sink, as users write it.
pub(super) fn sink_name(create: &CreateFlow) -> &TableName {
    &create.sink
}
