import { type RemoteRequest, ResultFiles, ToolError } from '../../engine/tools/index.ts';
import type { ReplyPart } from '../../providers/a2a/task-reading.ts';
import { visibleText } from '../../providers/mcp/visible-text.ts';

type File = Extract<ReplyPart, { kind: 'file' }>;

const plainName = /^[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}$/;
const plainType = /^[a-z]+\/([a-z0-9]{1,8})$/;

/** A file keeps the name that it was given where that hides nothing. */
const fileName = ({ name, mediaType }: File): string =>
  name !== null && plainName.test(name) ? name : `result.${plainType.exec(mediaType ?? '')?.[1] ?? 'bin'}`;

/** Keeps a file; its line is added to the result by whoever runs the call. Otherwise what is said of it instead. */
const fileText = async (
  file: File,
  save: RemoteRequest['saveAttachment'],
  files: ResultFiles,
): Promise<string | null> => {
  const left = `[a file of type ${visibleText((file.mediaType ?? 'application/octet-stream').slice(0, 100))} was left out]`;
  // What is elsewhere is not fetched: its address is the other side's word.
  if (file.bytes === null) return file.url === null ? left : `[file ${visibleText(file.url)}]`;
  if (!files.take()) return null;
  const bytes = Buffer.from(file.bytes, 'base64');
  if (bytes.byteLength === 0) return left;
  try {
    await save(bytes, fileName(file));
    return null;
  } catch (error) {
    // The rules of attachments refuse it: the rest of the answer still counts.
    if (error instanceof ToolError) return left;
    throw error;
  }
};

/** The answer of a remote agent as a text; files in it become attachments of the run that asked. */
export const replyText = async (
  parts: readonly ReplyPart[],
  save: RemoteRequest['saveAttachment'],
): Promise<string> => {
  const lines: string[] = [];
  const files = new ResultFiles();
  for (const part of parts) {
    const told =
      part.kind === 'text'
        ? visibleText(part.text)
        : part.kind === 'data'
          ? visibleText(JSON.stringify(part.data))
          : await fileText(part, save, files);
    if (told !== null) lines.push(told);
  }
  if (files.note !== null) lines.push(files.note);
  return lines.join('\n');
};
