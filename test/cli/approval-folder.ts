import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createFolder, type Folder } from './support.ts';

const settings = `
Host:
  Url: http://127.0.0.1:0
  LogLevel: error
  Modules: [./modules/billing.mjs]
Service:
  Providers:
    Scripted: { demo: { File: ./scripts/demo.yaml } }
  Drain: { Timeout: 2s }
`;

/** Tools with a list of what was really executed, one with approval and one without body. */
const billing = `
import { appendFileSync } from 'node:fs';
const done = (line) => appendFileSync(new URL('../done.txt', import.meta.url), line + '\\n');
export default {
  name: 'billing',
  tools: [
    {
      name: 'refund',
      description: 'Gives money back.',
      effect: 'Destructive',
      requiresApproval: true,
      inputSchema: { type: 'object', properties: { amount: { type: 'number' }, note: { type: 'string' } } },
      execute: async ({ amount }) => { done('refund ' + amount); return 'gave ' + amount + ' back'; },
    },
    {
      name: 'ask_printer',
      description: 'What the printer of the user says.',
      runsOnClient: true,
      inputSchema: { type: 'object', properties: { tray: { type: 'string' } } },
    },
  ],
  approvalPresenters: [
    {
      toolName: 'refund',
      present: async ({ arguments: { amount } }) => ({
        entityType: 'Order', entityId: '7', entityName: null, message: 'Give ' + amount + ' back.\\u001b[31m',
      }),
    },
  ],
};
`;

const script = `
rules:
  - when: { tool: refund }
    reply: { text: "Result: {{last}}." }
  - when: { tool: ask_printer }
    reply: { text: "Printer: {{last}}." }
  - when: { message: both }
    reply: { toolCalls: [{ name: refund, arguments: { amount: 5 } }, { name: refund, arguments: { amount: 6 } }] }
  - when: { message: refund }
    reply: { toolCalls: [{ name: refund, arguments: { amount: 5, note: "a\\u202eb \\e[2J" } }] }
  - when: { message: print }
    reply: { toolCalls: [{ name: ask_printer, arguments: { tray: upper } }] }
  - reply: { text: "Hello there." }
`;

export interface ApprovalFolder extends Folder {
  /** What the tools have really done, in order. */
  done(): string[];
}

/** A folder with an agent `clerk` whose tools wait for somebody, and `payer`, which can run queued as well. */
export const approvalFolder = async (t: Parameters<typeof createFolder>[0]): Promise<ApprovalFolder> => {
  const folder = createFolder(t);
  folder.write('service.yaml', settings);
  folder.write('modules/billing.mjs', billing);
  folder.write('scripts/demo.yaml', script);
  folder.write('done.txt', '');
  folder.write(
    'clerk.yaml',
    'name: clerk\nmodel: { provider: demo, model: m }\ninstructions: Be brief.\ntoolNames: [refund, ask_printer]\n',
  );
  folder.write(
    'payer.yaml',
    'name: payer\nmodel: { provider: demo, model: m }\ninstructions: Be brief.\ntoolNames: [refund]\n',
  );
  const { code, stderr } = await folder.acp(['agents', 'apply', '-f', 'clerk.yaml', '-f', 'payer.yaml']);
  if (code !== 0) throw new Error(stderr);
  return {
    ...folder,
    done: () => readFileSync(join(folder.path, 'done.txt'), 'utf8').split('\n').filter(Boolean),
  };
};
