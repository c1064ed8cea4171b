import { AcpError, invalidField } from '../../contract/errors.ts';
import type { CallContext } from '../../core/context.ts';
import { type ItemRules, itemRulesOf, itemsOf, runOfItem } from './items.ts';
import type { KeptResponses } from './kept-responses.ts';
import type { InputItem, Item, ResponseRequest } from './responses.schema.ts';

export interface ResponseReferenceDeps {
  readonly kept: KeptResponses;
  readonly items: ItemRules;
}

type Input = ResponseRequest['input'] | undefined;

/** Each is a log to be read. */
const maxResponses = 500;

/** The type may be left out where there is nothing but the id. */
const isReference = ({ type, role, id }: InputItem): boolean =>
  type === 'item_reference' || ((type ?? role ?? null) === null && typeof id === 'string');

const unknown = (path: string): AcpError =>
  invalidField(
    `${path}.id`,
    'names no item of a response that is kept here: send the item itself, or what is new with conversation or previous_response_id',
  );

/**
 * Puts items of earlier responses in the place of references to them, as programs send that keep the conversation themselves and
 * expect the service to keep its words. An item says in its id whose it is.
 */
export const createResponseReferences = ({ kept, items }: ResponseReferenceDeps) => {
  const itemsIn = async (context: CallContext, responseId: string): Promise<ReadonlyMap<string, Item>> => {
    const found = await kept.find(context, responseId);
    const { tenant_id: tenantId, agent_name: agentName } = found.row;
    const given = itemsOf(tenantId, await kept.inputOf(found), itemRulesOf(agentName, items));
    const { response } = await kept.eventsOf(found);
    return new Map([...given, ...(response.output as Item[])].map((item) => [item.id, item]));
  };

  return async (context: CallContext, input: Input): Promise<Input> => {
    if (!Array.isArray(input) || !input.some(isReference)) return input;
    const known = new Map<string, ReadonlyMap<string, Item>>();

    const itemOf = async (id: unknown, path: string): Promise<InputItem> => {
      const runHex = typeof id === 'string' ? runOfItem(id) : null;
      if (runHex === null) throw unknown(path);
      const responseId = `resp_${runHex}`;
      let there = known.get(responseId);
      if (there === undefined) {
        if (known.size === maxResponses)
          throw invalidField('input', `refers to items of more than ${maxResponses} responses`);
        there = await itemsIn(context, responseId).catch((error: unknown) => {
          throw error instanceof AcpError && error.code === 'response-not-found' ? unknown(path) : error;
        });
        known.set(responseId, there);
      }
      const item = there.get(id as string);
      if (item === undefined) throw unknown(path);
      return item as InputItem;
    };

    const resolved: InputItem[] = [];
    for (const [index, item] of input.entries())
      resolved.push(isReference(item) ? await itemOf(item.id, `input[${index}]`) : item);
    return resolved;
  };
};

export type ResponseReferences = ReturnType<typeof createResponseReferences>;
