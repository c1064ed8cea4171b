import type { Json } from '../../contract/schema.ts';
import { parsedJson } from '../../core/documents/json-depth.ts';
import type { AttachmentRow } from '../../db/tables.ts';
import type { ModelResponseFormat } from '../../providers/models/model-provider.ts';
import { isJsonFormat } from './agent-tool.rules.ts';
import { type McpToolResult, textContent } from './mcp-tool.ts';

/** A run as far as its answer names it; it has no id where it never began. */
export interface AnsweredRun {
  readonly runId?: string;
  readonly sessionId: string | null;
  /** What the store did not take of the run; absent where it took all. */
  readonly warnings?: Json[];
}

export type RunFile = Pick<AttachmentRow, 'id' | 'file_name' | 'media_type' | 'byte_size'>;

/**
 * A file that the run made; who reads it needs the authority for that. The address is absolute: the protocol says so, and its
 * library for Python gives up the whole result for one that is not.
 */
const fileLink = (base: string, file: RunFile): Readonly<Record<string, Json>> => ({
  type: 'resource_link',
  uri: `${base}/api/attachments/${file.id}`,
  name: file.file_name,
  mimeType: file.media_type,
  size: file.byte_size,
});

export const agentResult = (
  run: AnsweredRun,
  output: string | null,
  format: ModelResponseFormat | null,
  files: readonly RunFile[],
  base: string,
): McpToolResult => {
  const json = isJsonFormat(format) && output !== null ? parsedJson(output) : undefined;
  return {
    content: [textContent(output ?? ''), ...files.map((file) => fileLink(base, file))],
    // There are clients that show their model these members alone: the answer has to be among them.
    structuredContent: { ...run, ...(json === undefined ? { text: output ?? '' } : { output: json }) },
  };
};

/** A run that was refused, or did not come to its answer. */
export const agentFailure = (run: AnsweredRun, errorType: string, message: string): McpToolResult => ({
  content: [textContent(message)],
  structuredContent: { ...run, errorType },
  isError: true,
});
