import { readFileSync } from 'node:fs';
import { LineCounter, parseDocument } from 'yaml';
import { yamlFault } from '../../../core/documents/yaml-fault.ts';
import type { Script } from './script.ts';
import { ScriptError } from './script-error.ts';
import { ScriptNodes } from './script-nodes.ts';
import { readScript } from './script-reader.ts';

/** A script from YAML text; `file` is only for messages. Throws ScriptError with every problem. */
export const parseScript = (text: string, file: string): Script => {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true });
  if (document.errors.length > 0)
    throw new ScriptError(
      document.errors.map((error) => ({
        file,
        line: lines.linePos(error.pos[0]).line,
        field: '',
        message: `is not valid YAML: ${yamlFault(error)}`,
      })),
    );
  const nodes = new ScriptNodes(file, document, lines);
  const script = readScript(file, nodes.resolve(document.contents), nodes);
  if (nodes.problems.length > 0)
    throw new ScriptError(nodes.problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0)));
  return script;
};

/** Reads and checks a script file (YAML, UTF-8). Throws ScriptError with file, line and field of every problem. */
export const loadScript = (file: string): Script => {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'unreadable';
    throw new ScriptError([{ file, line: null, field: '', message: `cannot be read (${reason})` }], { cause: error });
  }
  return parseScript(text, file);
};
