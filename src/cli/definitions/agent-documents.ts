import type { DefinitionDocument, DefinitionProblem } from '../../contract/definition-document.ts';
import type { DefinitionSources } from './definition-sources.ts';

const kindProblem = ({ file, lineOf, value }: DefinitionDocument, message: string): DefinitionProblem => ({
  file,
  line: lineOf('kind'),
  name: typeof value['name'] === 'string' ? value['name'] : null,
  field: 'kind',
  message,
});

/** The agents among declarations; each document of another or an unknown kind becomes a problem. */
export const agentDocuments = async ({ documents, problems }: DefinitionSources): Promise<DefinitionSources> => {
  if (documents.every(({ value }) => value['kind'] === undefined)) return { documents, problems };
  const { kindOf, unknownKind } = await import('../declarations/declaration-kinds.ts');
  const agents: DefinitionDocument[] = [];
  const others: DefinitionProblem[] = [];
  for (const document of documents) {
    const { kind: word = 'Agent' } = document.value;
    const kind = kindOf(word);
    if (kind?.kind === 'Agent') agents.push(document);
    else if (kind === undefined) others.push(kindProblem(document, unknownKind(word)));
    else
      others.push(
        kindProblem(
          document,
          `is ${kind.kind}, and this command is for agents; \`acp apply\` takes every kind, and checks them with --dry-run`,
        ),
      );
  }
  return { documents: agents, problems: [...problems, ...others] };
};
