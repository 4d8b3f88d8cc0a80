//! Length of sentences in the pages under `docs/`.

use crate::Violation;
use crate::project::TextFile;

const RULE: &str = "sentence-length";

/// Words of a page's sentences, on average.
const WORDS: usize = 18;

/// Checks every page.
pub(super) fn check(files: &[TextFile]) -> Vec<Violation> {
    let is_page = |file: &&TextFile| file.path.starts_with("docs/") && file.path.ends_with(".md");
    files.iter().filter(is_page).filter_map(judge).collect()
}

fn judge(page: &TextFile) -> Option<Violation> {
    let (words, sentences) = count(&page.text);
    (words > WORDS * sentences).then(|| {
        let what =
            format!("{words} words in {sentences} sentences: at most {WORDS} each on average");
        Violation::new(&page.path, 0, RULE, what)
    })
}

/// Counts words and sentences outside code, tables, headings and comments.
fn count(text: &str) -> (usize, usize) {
    let (mut code, mut blocks) = (false, vec![String::new()]);
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            code = !code;
        }
        let item = line.starts_with("- ")
            || line.starts_with("* ")
            || line
                .split_once(". ")
                .is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        let skipped = code
            || line.is_empty()
            || ["```", "|", "#", "<!--"]
                .iter()
                .any(|start| line.starts_with(start));
        if item || skipped {
            blocks.push(String::new());
        }
        if let Some(block) = blocks.last_mut().filter(|_| !skipped) {
            block.push_str(
                line.trim_start_matches(|letter: char| "-*.0123456789 ".contains(letter)),
            );
            block.push(' ');
        }
    }
    let counted = blocks.iter().map(|block| count_block(block));
    counted.fold((0, 0), |sum, (words, sentences)| {
        (sum.0 + words, sum.1 + sentences)
    })
}

fn count_block(block: &str) -> (usize, usize) {
    let code_as_word = block
        .split('`')
        .enumerate()
        .map(|(index, part)| match index % 2 {
            0 => part,
            _ => "code",
        });
    let block: String = code_as_word.collect();
    let words: Vec<&str> = block
        .split_whitespace()
        .filter(|word| word.contains(char::is_alphanumeric))
        .collect();
    let ends = |word: &&&str| {
        word.trim_end_matches(['"', ')', '*', '_'])
            .ends_with(['.', '!', '?'])
    };
    let ended = words.iter().rev().skip(1).filter(ends).count();
    (words.len(), if words.is_empty() { 0 } else { ended + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_with_their_mark_their_item_or_their_paragraph() {
        assert_eq!(count("One two. Three four\nfive.\n\nSix"), (6, 3));
        assert_eq!(count("Such:\n- one two\n- three\n2. four"), (5, 4));
        assert_eq!(
            count("Run `just bench --small now.` twice (see it.) Then 0.5 s."),
            (8, 2)
        );
    }

    #[test]
    fn code_tables_headings_and_comments_do_not_count() {
        let text = "# Head\n\n| a | b |\n|---|---|\n\n```sh\nmake it\n```\n<!-- x -->\nOne.";
        assert_eq!(count(text), (1, 1));
    }

    #[test]
    fn the_sentences_of_a_page_have_a_bound() {
        let page = |words: usize| TextFile {
            path: "docs/x.md".into(),
            text: "word ".repeat(words),
        };
        assert!(check(&[page(18)]).is_empty());
        assert_eq!(check(&[page(19)]).len(), 1);
    }
}
