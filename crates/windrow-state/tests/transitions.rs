//! What each answer makes of a flow: mode, decision, reason, checkpoint and dirty windows, row by row.

use expect_test::expect;
use windrow_state::{
    Answer, Approach, Coverage, DirtySet, FlowState, Move, News, Outlook, Progress, Proof, SinkCommits,
    Watermarks,
};
use windrow_time::InstantRange;

fn windows(numbers: &[i64]) -> DirtySet {
    numbers.iter().map(|&number| InstantRange::new(number, number + 1)).collect()
}

fn at(sequences: &[u64]) -> Watermarks {
    (0..).zip(sequences.iter().copied()).collect()
}

fn clean(sequences: &[u64]) -> Progress {
    Progress::start().observe(&at(sequences), &windows(&[])).expect("from the start")
}

fn news(sequences: &[u64], touched: &[i64], appends_only: bool) -> News {
    News { now: at(sequences), touched: windows(touched), appends_only }
}

fn read(regions: &[u64], watermarks: Option<Watermarks>) -> Answer {
    Answer::Written(Proof { regions: regions.iter().copied().collect(), watermarks })
}

/// A line for each answer, with what the source then says of the changes since the checkpoint.
fn verdicts(
    state: &FlowState,
    news: &News,
    chunk: &[i64],
    sink: SinkCommits,
    answers: &[(&str, Answer, Option<News>)],
) -> String {
    let outlook = Outlook { news: news.clone(), approach: Approach::Auto, merge_cost: 0, repair_cost: 0 };
    let attempt = match state.next_move(&outlook).expect("a move") {
        Move::Repair { observed, coverage } => state.repair(&observed, coverage, windows(chunk), sink),
        Move::Merge { next } => state.merge(next, news, sink),
        other => panic!("{other:?} asks nothing"),
    };
    let mut lines =
        format!("{} of [{}], with ({}) before\n", attempt.coverage, attempt.windows, attempt.intent.dirty());
    for (name, answer, since) in answers {
        let verdict = state.judge(&attempt, answer, |_| since.clone());
        let progress = verdict.state.progress();
        let (mode, decision, reason) = (verdict.state.mode(), verdict.decision, verdict.reason);
        lines.push_str(&format!(
            "  {name}: {mode}, {decision}, {reason}, C ({}), D ({})\n",
            progress.checkpoint(),
            progress.dirty()
        ));
    }
    lines
}

#[test]
fn a_base_repair() {
    let state = FlowState::new(clean(&[3, 3]), true);
    let news_now = news(&[5, 4], &[1, 2], false);
    let answers = [
        ("read as asked", read(&[0, 1], Some(at(&[5, 4]))), None),
        ("read above", read(&[0, 1], Some(at(&[6, 4]))), Some(news(&[6, 4], &[1, 2, 7], false))),
        ("read above, and nobody knows what happened", read(&[0, 1], Some(at(&[6, 4]))), None),
        ("a region without watermark", read(&[0, 1], Some(at(&[5]))), None),
        ("no region", read(&[], Some(at(&[]))), None),
        ("no proof", read(&[0, 1], None), None),
        ("failed", Answer::Failed, None),
        ("stale", Answer::Stale, None),
    ];
    let found = [
        verdicts(&state, &news_now, &[1], SinkCommits::RowsAndProgressApart, &answers),
        verdicts(&state, &news_now, &[1, 2], SinkCommits::RowsWithProgress, &answers[..1]),
        verdicts(
            &state.clone().without_merges(),
            &news_now,
            &[1, 2],
            SinkCommits::RowsWithProgress,
            &answers[..1],
        ),
    ];
    expect![[r#"
        scoped_base_repair of [[1, 2)], with ([1, 3)) before
          read as asked: full_snapshot, continue_repair, dirty_backlog_pending, C (0:5, 1:4), D ([2, 3))
          read above: full_snapshot, continue_repair, dirty_backlog_pending, C (0:6, 1:4), D ([2, 3), [7, 8))
          read above, and nobody knows what happened: full_snapshot, fallback, stale_cursor, C (0:3, 1:3), D ([1, 3))
          a region without watermark: full_snapshot, fallback, incomplete_region_watermark, C (0:3, 1:3), D ([1, 3))
          no region: full_snapshot, fallback, incomplete_region_watermark, C (0:3, 1:3), D ([1, 3))
          no proof: full_snapshot, fallback, missing_region_watermark, C (0:3, 1:3), D ([1, 3))
          failed: full_snapshot, fallback, query_failure, C (0:3, 1:3), D ([1, 3))
          stale: full_snapshot, fallback, stale_cursor, C (0:3, 1:3), D ([1, 3))
        scoped_base_repair of [[1, 3)], with () before
          read as asked: incremental, advance, none, C (0:5, 1:4), D ()
        scoped_base_repair of [[1, 3)], with () before
          read as asked: full_snapshot, fallback, incremental_disabled, C (0:5, 1:4), D ()
    "#]].assert_eq(&found.concat());
}

#[test]
fn a_fenced_chunk() {
    let dirty = clean(&[3, 3]).observe(&at(&[5, 4]), &windows(&[1, 2])).expect("forward");
    let state = FlowState::new(dirty, true);
    let news_now = news(&[9, 9], &[8], true);
    let answers = [
        ("read as asked", read(&[0, 1], Some(at(&[5, 4]))), None),
        ("read below", read(&[0, 1], Some(at(&[4, 4]))), None),
        ("read above", read(&[0, 1], Some(at(&[6, 4]))), Some(news(&[6, 4], &[8], true))),
        ("a region below and one above", read(&[0, 1], Some(at(&[4, 9]))), None),
        ("no proof", read(&[0, 1], None), None),
        ("failed", Answer::Failed, None),
        ("stale", Answer::Stale, None),
    ];
    let found = [
        verdicts(&state, &news_now, &[1], SinkCommits::RowsAndProgressApart, &answers),
        verdicts(&state, &news_now, &[1, 2], SinkCommits::RowsAndProgressApart, &answers[..1]),
    ];
    expect![[r#"
        fenced_repair_chunk of [[1, 2)], with ([1, 3)) before
          read as asked: full_snapshot, continue_repair, dirty_backlog_pending, C (0:5, 1:4), D ([2, 3))
          read below: full_snapshot, fallback, incomplete_region_watermark, C (0:5, 1:4), D ([1, 3))
          read above: full_snapshot, fallback, incomplete_region_watermark, C (0:6, 1:4), D ([2, 3), [8, 9))
          a region below and one above: full_snapshot, fallback, incomplete_region_watermark, C (0:5, 1:4), D ([1, 3))
          no proof: full_snapshot, fallback, missing_region_watermark, C (0:5, 1:4), D ([1, 3))
          failed: full_snapshot, fallback, query_failure, C (0:5, 1:4), D ([1, 3))
          stale: full_snapshot, fallback, snapshot_fence_expired, C (0:5, 1:4), D ([1, 3))
        fenced_repair_chunk of [[1, 3)], with ([1, 3)) before
          read as asked: incremental, advance, none, C (0:5, 1:4), D ()
    "#]].assert_eq(&found.concat());
}

#[test]
fn a_merge() {
    let state = FlowState::new(clean(&[3, 3]), true);
    let news_now = news(&[5, 4], &[1, 2], true);
    let answers = [
        ("read as asked", read(&[0, 1], Some(at(&[5, 4]))), None),
        ("one region took part", read(&[0], Some(at(&[5]))), Some(news(&[5, 3], &[1], true))),
        ("read less", read(&[0, 1], Some(at(&[4, 4]))), Some(news(&[4, 4], &[1], true))),
        ("went backwards", read(&[0, 1], Some(at(&[2, 4]))), None),
        ("a region that was never read", read(&[0, 1, 2], Some(at(&[5, 4, 1]))), None),
        ("rows were deleted", read(&[0, 1], Some(at(&[6, 4]))), Some(news(&[6, 4], &[1, 2], false))),
        ("no proof", read(&[0, 1], None), None),
        ("failed", Answer::Failed, None),
        ("stale", Answer::Stale, None),
    ];
    let found = [
        verdicts(&state, &news_now, &[], SinkCommits::RowsAndProgressApart, &answers),
        verdicts(&state, &news_now, &[], SinkCommits::RowsWithProgress, &answers[7..]),
    ];
    expect![[r#"
        incremental_delta of [[1, 3)], with ([1, 3)) before
          read as asked: incremental, advance, none, C (0:5, 1:4), D ()
          one region took part: incremental, advance, none, C (0:5, 1:3), D ()
          read less: incremental, advance, none, C (0:4, 1:4), D ()
          went backwards: full_snapshot, fallback, incomplete_region_watermark, C (0:3, 1:3), D ([1, 3))
          a region that was never read: full_snapshot, fallback, incomplete_region_watermark, C (0:3, 1:3), D ([1, 3))
          rows were deleted: full_snapshot, fallback, incomplete_region_watermark, C (0:3, 1:3), D ([1, 3))
          no proof: full_snapshot, fallback, missing_region_watermark, C (0:3, 1:3), D ([1, 3))
          failed: full_snapshot, fallback, incremental_query_failure, C (0:3, 1:3), D ([1, 3))
          stale: full_snapshot, fallback, stale_cursor, C (0:3, 1:3), D ([1, 3))
        incremental_delta of [[1, 3)], with () before
          failed: incremental, fallback, incremental_query_failure, C (0:3, 1:3), D ()
          stale: incremental, fallback, stale_cursor, C (0:3, 1:3), D ()
    "#]].assert_eq(&found.concat());
}

#[test]
fn after_a_stale_answer_the_next_move_reads_a_new_snapshot() {
    let dirty = clean(&[3]).observe(&at(&[5]), &windows(&[1, 2])).expect("forward");
    let state = FlowState::new(dirty, true);
    let outlook =
        Outlook { news: news(&[9], &[8], true), approach: Approach::Auto, merge_cost: 0, repair_cost: 0 };
    let Move::Repair { observed, coverage: Coverage::FencedRepairChunk } = state.next_move(&outlook).unwrap()
    else {
        panic!("a chunk at the fence");
    };
    let attempt =
        state.repair(&observed, Coverage::FencedRepairChunk, windows(&[1]), SinkCommits::RowsWithProgress);
    let gone = state.judge(&attempt, &Answer::Stale, |_| None).state;
    let Move::Repair { observed, coverage: Coverage::ScopedBaseRepair } = gone.next_move(&outlook).unwrap()
    else {
        panic!("a new snapshot");
    };
    assert_eq!((observed.checkpoint(), observed.dirty()), (&at(&[9]), &windows(&[1, 2, 8])));
    // A merge whose range of sequences is gone is not tried again either.
    let state = FlowState::new(clean(&[3]), true);
    let Move::Merge { next } = state.next_move(&outlook).unwrap() else { panic!("a merge") };
    let attempt = state.merge(next, &outlook.news, SinkCommits::RowsWithProgress);
    let gone = state.judge(&attempt, &Answer::Stale, |_| None).state;
    assert!(matches!(gone.next_move(&outlook).unwrap(), Move::Repair { .. }));
}
