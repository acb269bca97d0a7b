//! A step of the state machine that finds nothing to do allocates nothing.

use windrow_state::{Approach, DirtySet, FlowState, Move, News, Outlook, Progress, Watermarks};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

#[test]
fn an_idle_step_allocates_nothing() {
    let now: Watermarks = (0..8).map(|region| (region, 1_000 + region)).collect();
    let progress = Progress::start().observe(&now, &DirtySet::default()).unwrap();
    let state = FlowState::new(progress, true);
    let news = News { now, touched: DirtySet::default(), appends_only: true };
    let outlook = Outlook { news, approach: Approach::Auto, merge_cost: 0, repair_cost: 0 };
    let _profiler = dhat::Profiler::builder().testing().build();
    for _ in 0..1_000 {
        assert_eq!(state.next_move(&outlook).unwrap(), Move::Idle);
    }
    assert_eq!(dhat::HeapStats::get().total_blocks, 0);
}
