import type { DefinitionDocument } from '../../contract/definition-document.ts';
import { AcpError } from '../../contract/errors.ts';
import { inDependencyOrder } from './definition-sources.ts';

/** One definition of several that are brought in together. */
export interface BatchMember {
  readonly document: DefinitionDocument;
  /** Null where it has none. */
  readonly name: string | null;
  /** What keeps it from being looked at further. */
  readonly fault: AcpError | null;
}

const nameFault = (message: string, detail: string): AcpError =>
  new AcpError('definition-invalid', detail, { details: { errors: [{ path: 'name', message }] } });

/** Documents in the order in which they are applied, with what they are called. A name belongs to the first that has it. */
export const definitionBatch = (documents: readonly DefinitionDocument[]): readonly BatchMember[] => {
  const owners = new Map<string, DefinitionDocument>();
  return inDependencyOrder(documents).map((document) => {
    const { name } = document.value;
    if (typeof name !== 'string' || name === '')
      return { document, name: null, fault: nameFault('is missing or no text', 'A definition needs a name.') };
    const owner = owners.get(name);
    if (owner === undefined) {
      owners.set(name, document);
      return { document, name, fault: null };
    }
    const place = `${owner.file}:${owner.line}`;
    const detail = `${name} is also defined at ${place}.`;
    return { document, name, fault: nameFault(`is also the name of the definition at ${place}`, detail) };
  });
};
