import { isDeepStrictEqual } from 'node:util';
import { readSkillMarkdown, SkillFileError, type SkillFrontmatter, writeFrontmatter } from './frontmatter.ts';

/*
 * The frontmatter of a file may say the same in its own way: order, comments, quotes, line ends, members of other
 * tools. Where it differs from what would be written, its text goes into metadata, in pieces, so that an export gives
 * the file back as it was.
 */

const key = 'acp-frontmatter-';
// A value of metadata has at most 1024 characters.
const pieceLength = 1000;
const mostPieces = 8;

const isPiece = (name: string): boolean => name.startsWith(key);

const withoutSource = (metadata: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(metadata).filter(([name]) => !isPiece(name)));

/** Metadata that holds the head of a file; null: it is too long to be kept. Nothing is added where nothing is lost. */
export const keepSource = (frontmatter: SkillFrontmatter, head: string): Record<string, string> | null => {
  const metadata = { ...frontmatter.metadata };
  if (head === writeFrontmatter(frontmatter)) return metadata;
  const characters = [...head];
  const count = Math.ceil(characters.length / pieceLength);
  if (count > mostPieces) return null;
  for (let index = 0; index < count; index += 1)
    metadata[`${key}${index + 1}`] = characters.slice(index * pieceLength, (index + 1) * pieceLength).join('');
  return metadata;
};

/** The head to write: the kept one while it still says what the skill says, else a new one. */
export const sourceHead = (skill: SkillFrontmatter): string => {
  const metadata = withoutSource(skill.metadata);
  const plain = { ...skill, metadata };
  const pieces = Object.keys(skill.metadata).filter(isPiece).length;
  if (pieces === 0) return writeFrontmatter(plain);
  const head = Array.from({ length: pieces }, (_, index) => skill.metadata[`${key}${index + 1}`] ?? '').join('');
  try {
    const { name, description, license, compatibility, allowedTools } = plain;
    const own: SkillFrontmatter = { name, description, license, compatibility, allowedTools, metadata };
    if (isDeepStrictEqual(readSkillMarkdown(head).frontmatter, own)) return head;
  } catch (error) {
    // Somebody else's metadata under these names.
    if (!(error instanceof SkillFileError)) throw error;
  }
  return writeFrontmatter(plain);
};
