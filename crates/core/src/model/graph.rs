//! Whether a graph can run to its end: the one search for cycles, for runs and for whoever checks a graph before it is one.

/// The positions along a cycle, each needed by the one after it, the first again at the end; none if there is no cycle.
/// `parents`: what each node waits for, by position, without repetitions. Linear in nodes and edges.
pub fn cycle(parents: &[Vec<usize>]) -> Option<Vec<usize>> {
    let waiting = stuck(parents);
    let mut at = waiting.iter().position(|&open| open > 0)?;
    let mut seen = vec![usize::MAX; parents.len()];
    let mut path = Vec::new();
    // Back along what still waits, until a node comes round again.
    while seen[at] == usize::MAX {
        seen[at] = path.len();
        path.push(at);
        at = *parents[at].iter().find(|&&need| waiting[need] > 0).expect("what waits, waits for something that waits");
    }
    let mut cycle = path.split_off(seen[at]);
    cycle.push(at);
    cycle.reverse();
    Some(cycle)
}

/// The nodes in an order in which each comes after what it waits for. Those on a cycle, and behind one, are left out.
pub fn order(parents: &[Vec<usize>]) -> Vec<usize> {
    take_away(parents).1
}

fn stuck(parents: &[Vec<usize>]) -> Vec<usize> {
    take_away(parents).0
}

/// Takes nodes away that wait for nothing until none is left. How much each of the others still waits for, and the order.
fn take_away(parents: &[Vec<usize>]) -> (Vec<usize>, Vec<usize>) {
    let mut waiting: Vec<usize> = parents.iter().map(Vec::len).collect();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); parents.len()];
    for (at, needs) in parents.iter().enumerate() {
        needs.iter().for_each(|&need| children[need].push(at));
    }
    let mut order: Vec<usize> = (0..parents.len()).filter(|&at| waiting[at] == 0).collect();
    let mut next = 0;
    while next < order.len() {
        for &child in &children[order[next]] {
            waiting[child] -= 1;
            if waiting[child] == 0 {
                order.push(child);
            }
        }
        next += 1;
    }
    (waiting, order)
}
