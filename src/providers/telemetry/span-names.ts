import type { Span } from '../../core/telemetry/span.ts';

/** What a span of an operation is about. */
const subjects: Readonly<Record<string, string>> = {
  chat: 'gen_ai.request.model',
  execute_tool: 'gen_ai.tool.name',
  invoke_agent: 'gen_ai.agent.name',
};

// Receivers group by names, which no definition may make longer than a name is.
const maxSubject = 128;

/**
 * The name under which a span leaves the process: the GenAI conventions' where they have one, such as `chat gpt-5` for
 * `acp.model.call`, else our own. A tool that the model has made up is not in the name: there is no end of those.
 */
export const exportedName = ({ name, kind, attributes }: Span): string => {
  const operation = attributes['gen_ai.operation.name'];
  // The span of a request has the name that the HTTP conventions give it.
  const subject = typeof operation === 'string' && kind !== 'Server' ? subjects[operation] : undefined;
  if (subject === undefined) return name;
  const about = attributes['acp.tool.unknown'] === true ? '' : String(attributes[subject] ?? '');
  return `${operation} ${about.slice(0, maxSubject).toWellFormed()}`.trimEnd();
};
