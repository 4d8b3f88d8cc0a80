//! Paths, or topics, of the replies where commands name them.

use muster_platform::ReplyPath;

/// The paths that came with commands whose replies are open: at most one a message of the pool. What is
/// given back is used again, so that a command costs no allocation once the pool has grown.
#[derive(Debug, Default)]
pub(crate) struct ReplyPaths {
    paths: Vec<ReplyPath>,
    free: Vec<u32>,
}

impl ReplyPaths {
    /// Keeps a path; `path` is then an old one, to be used again.
    pub(crate) fn keep(&mut self, path: &mut ReplyPath) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.paths.push(ReplyPath::default());
            // Every place may be free one day, and then nothing shall be allocated.
            self.free.reserve(self.paths.capacity());
            self.paths.len() as u32 - 1
        });
        std::mem::swap(&mut self.paths[at as usize], path);
        at
    }

    /// The path at a place that was given out.
    pub(crate) fn get(&self, at: u32) -> &ReplyPath {
        &self.paths[at as usize]
    }

    /// The reply is over.
    pub(crate) fn release(&mut self, at: u32) {
        debug_assert!(!self.free.contains(&at), "a path is given back once");
        self.free.push(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_kept_until_its_reply_is_over_and_its_memory_is_used_again() {
        let mut paths = ReplyPaths::default();
        let mut keep = |segment: &str| {
            let mut path = ReplyPath::default();
            path.push(segment);
            paths.keep(&mut path)
        };
        let (one, two) = (keep("one"), keep("two"));
        assert!(paths.get(one).segments().eq(["one"]));
        assert!(paths.get(two).segments().eq(["two"]));
        paths.release(one);
        let mut third = ReplyPath::default();
        third.push("three");
        assert_eq!(paths.keep(&mut third), one);
        assert!(third.segments().eq(["one"]), "it is used again");
        assert!(paths.get(two).segments().eq(["two"]));
    }
}
