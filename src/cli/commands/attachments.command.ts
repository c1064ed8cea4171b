import type { Command } from 'commander';
import { AcpError } from '../../contract/errors.ts';
import { attachmentOperations } from '../../features/attachments/attachments.operations.ts';
import type { AttachmentDescriptor } from '../../features/attachments/attachments.schema.ts';
import { type CommandHost, covers, type Invocation } from '../command-host.ts';
import { uploadFile } from '../files/upload-file.ts';
import { writeWhole } from '../files/write-whole.ts';
import type { Session } from '../session.ts';
import { registerAttachmentsMove } from './attachments-move.command.ts';

const upload = async (session: Session, { args, options }: Invocation): Promise<void> => {
  const sessionId = options['session'] as string | undefined;
  await session.connected(async ({ client }) => {
    const files = args[0] as string[];
    const descriptors: AttachmentDescriptor[] = [];
    const print = (): Promise<void> => {
      const isOne = session.globals.json && files.length === 1;
      return session.print(isOne ? descriptors[0] : descriptors, attachmentOperations.list.cli.columns);
    };
    try {
      for (const file of files) descriptors.push(await uploadFile(client, file, sessionId));
    } catch (error) {
      // Those before it are stored, and nobody could name or delete them without their ids.
      if (descriptors.length > 0) await print();
      throw error;
    }
    await print();
  });
};

const download = async (session: Session, { args, options }: Invocation): Promise<void> => {
  const { terminal, cwd } = session;
  const output = options['output'] as string | undefined;
  if (output === undefined && terminal.interactive)
    throw new AcpError('validation-failed', 'A terminal does not show files: give one with --output.');
  await session.connected(async ({ client }) => {
    const reply = await client.attachments.download({ params: { id: args[0] as string }, signal: terminal.closed });
    if (reply.bytes === undefined) throw new AcpError('cannot-connect', 'The service did not answer with a file.');
    if (output !== undefined) await writeWhole(output, cwd, reply.bytes);
    else for await (const chunk of reply.bytes) await terminal.write(chunk);
  });
};

/** `acp attachments upload|get|move`; listing and deleting are made from the operation table. */
export const registerAttachments = (attachments: Command, host: CommandHost): void => {
  const uploading = attachments
    .command('upload')
    .description('upload files that runs can reference')
    .argument('<file...>')
    .option('-s, --session <id>', 'session of the files');
  covers(uploading, 'attachments.upload').action(host.act(upload));
  const getting = attachments
    .command('get')
    .description('download the bytes of an attachment')
    .argument('<id>')
    .option('-o, --output <file>', 'file to write; default: the standard output, unless it is a terminal');
  covers(getting, 'attachments.download').action(host.act(download));
  registerAttachmentsMove(attachments, host);
};
