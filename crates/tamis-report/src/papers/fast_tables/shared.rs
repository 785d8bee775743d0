//! The shared-node table: lists that share their ends, each as long as its counter says.

use tamis::internals::fast_table::{
    Counters, MAX_HASHES, NIL, Place, TOO_MANY, TableParams, Trace, nils, reserve,
};
use tamis::{Digest, Invalid, OutOfMemory};

/// Items are in all their lists, as in the basic table, but one node may be in several lists. The
/// items of a bucket are the first nodes of its list, as many as its counter says; what follows
/// belongs to other buckets.
///
/// A walk ends after as many nodes as the counter says, and never at the end of the list. Behind
/// its own last node a list may point to nodes that have been freed and used again.
#[derive(Clone, Debug)]
pub struct Shared {
    counters: Counters,
    heads: Vec<u32>,
    nodes: Vec<Node>,
    /// The first free node. Each free node links to the next.
    free: u32,
    used: usize,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    item: u32,
    next: u32,
}

impl Shared {
    /// The nodes of `bucket`: the first ones of its list, as many as its counter says.
    fn walk(&self, bucket: u32) -> impl Iterator<Item = u32> {
        let count = self.counters.count(bucket.into());
        let first = self.heads[bucket as usize];
        let next = |&node: &u32| self.nodes.get(node as usize).map(|node| node.next);
        core::iter::successors(Some(first), next).take(count as usize)
    }

    fn node(&mut self, item: u32, next: u32) -> u32 {
        self.used += 1;
        let node = self.free;
        if let Some(taken) = self.nodes.get_mut(node as usize) {
            self.free = taken.next;
            *taken = Node { item, next };
            return node;
        }
        self.nodes.push(Node { item, next });
        (self.nodes.len() - 1) as u32
    }

    fn release(&mut self, node: u32) {
        self.used -= 1;
        self.nodes[node as usize].next = self.free;
        self.free = node;
    }

    /// How many nodes are in use: from one to k for each item.
    pub fn used(&self) -> usize {
        self.used
    }
}

impl Place for Shared {
    fn new(params: TableParams) -> Result<Self, OutOfMemory> {
        let heads = nils(usize::try_from(params.buckets()).map_err(|_| TOO_MANY)?)?;
        let counters = Counters::new(params)?;
        Ok(Self { counters, heads, nodes: Vec::new(), free: NIL, used: 0 })
    }

    fn find(&self, digest: Digest, is: impl Fn(u32) -> bool, by: &mut impl Trace) -> Option<u32> {
        let home = self.counters.find_home(digest, by)?;
        by.head();
        let mut items = self.walk(home).map(|node| self.nodes[node as usize].item);
        items.find(|&item| {
            by.node();
            is(item)
        })
    }

    fn prepare(&mut self, items: u64, digest: Digest) -> Result<(), OutOfMemory> {
        // A node for every bucket, and the new one, which is freed if no bucket wants it.
        let nodes = self.nodes.len();
        let most = (nodes as u64 + u64::from(MAX_HASHES) + 1).max(items);
        if most > u64::from(NIL) {
            return Err(TOO_MANY);
        }
        reserve(&mut self.nodes, most as usize - nodes)?;
        self.counters.prepare(&self.counters.buckets_of(digest))
    }

    fn link(&mut self, item: u32, digest: Digest, _: impl Fn(u32) -> Digest, _: &mut impl Trace) {
        let buckets = self.counters.buckets_of(digest);
        let new = self.node(item, NIL);
        let mut wanted = false;
        for &bucket in buckets.as_slice() {
            match self.walk(bucket).last() {
                None => {
                    self.heads[bucket as usize] = new;
                    wanted = true;
                }
                Some(last) => match self.nodes[last as usize].next {
                    NIL => {
                        self.nodes[last as usize].next = new;
                        wanted = true;
                    }
                    // Another list of this item ends in the same node.
                    next if next == new => wanted = true,
                    // The list goes on for others, so this item needs a node of its own in front.
                    _ => {
                        let copy = self.node(item, self.heads[bucket as usize]);
                        self.heads[bucket as usize] = copy;
                    }
                },
            }
        }
        if !wanted {
            self.release(new);
        }
        self.counters.raise(&buckets);
    }

    fn unlink(&mut self, item: u32, digest: Digest, _: impl Fn(u32) -> Digest, _: &mut impl Trace) {
        let buckets = self.counters.buckets_of(digest);
        // All nodes are found before anything changes, because a link may be part of several
        // lists.
        let mut places = [(NIL, NIL); MAX_HASHES as usize];
        for (place, &bucket) in places.iter_mut().zip(buckets.as_slice()) {
            let mut before = NIL;
            for node in self.walk(bucket) {
                if self.nodes[node as usize].item == item {
                    *place = (before, node);
                    break;
                }
                before = node;
            }
        }
        let places = &places[..buckets.as_slice().len()];
        for (&(before, node), &bucket) in places.iter().zip(buckets.as_slice()) {
            let Some(&Node { next, .. }) = self.nodes.get(node as usize) else { continue };
            match self.nodes.get_mut(before as usize) {
                Some(before) => before.next = next,
                None => self.heads[bucket as usize] = next,
            }
        }
        self.counters.lower(&buckets);
        for (done, &(_, node)) in places.iter().enumerate() {
            if node != NIL && !places[..done].iter().any(|&(_, freed)| freed == node) {
                self.release(node);
            }
        }
    }

    fn rename(&mut self, from: u32, to: u32, digest: Digest) {
        for &bucket in self.counters.buckets_of(digest).as_slice() {
            let node = self.walk(bucket).find(|&node| self.nodes[node as usize].item == from);
            if let Some(node) = node {
                self.nodes[node as usize].item = to;
            }
        }
    }

    fn counters(&self) -> Option<&Counters> {
        Some(&self.counters)
    }

    fn footprint(&self) -> u64 {
        let nodes = self.nodes.capacity() * size_of::<Node>();
        let heads = self.heads.capacity() * size_of::<u32>();
        self.counters.footprint() + (nodes + heads) as u64 * 8
    }

    fn validate(&self, items: u32, digest_of: impl Fn(u32) -> Digest) -> Result<(), Invalid> {
        self.counters.validate(items, &digest_of)?;
        // For each item, the last bucket in whose list it was met, plus one.
        let mut met = vec![0; items as usize];
        let mut reached = vec![false; self.nodes.len()];
        for bucket in 0..self.heads.len() as u32 {
            // The counter is right. If all nodes have different items of this bucket, none is
            // missing.
            let mut nodes = 0;
            for at in self.walk(bucket) {
                let node = self.nodes.get(at as usize).ok_or(Invalid("a list ends too early"))?;
                let met = met.get_mut(node.item as usize).ok_or(Invalid("a node has no item"))?;
                if core::mem::replace(met, bucket + 1) == bucket + 1 {
                    return Err(Invalid("an item is twice in a list"));
                }
                if !self.counters.buckets_of(digest_of(node.item)).contains(bucket) {
                    return Err(Invalid("an item is in a list where nobody looks for it"));
                }
                reached[at as usize] = true;
                nodes += 1;
            }
            if nodes != self.counters.count(bucket.into()) {
                return Err(Invalid("a list ends too early"));
            }
        }
        let free = core::iter::successors(Some(self.free), |&node| {
            self.nodes.get(node as usize).map(|node| node.next)
        });
        let mut spare = 0;
        for node in free.take(self.nodes.len() + 1).take_while(|&node| node != NIL) {
            if reached.get(node as usize) != Some(&false) {
                return Err(Invalid("a node is free and in use"));
            }
            spare += 1;
        }
        let used = reached.into_iter().filter(|&reached| reached).count();
        if used == self.used && used + spare == self.nodes.len() {
            Ok(())
        } else {
            Err(Invalid("a node is neither free nor in use"))
        }
    }
}
