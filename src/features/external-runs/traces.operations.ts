import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { ExportTraceServiceResponse } from './traces.schema.ts';

export const traceOperations = defineOperations({
  receive: {
    tag: 'Traces',
    role: 'Operator',
    scope: 'TracesWrite',
    ownProtocol: true,
    envelope: 'Otlp',
    method: 'POST',
    path: '/v1/traces',
    summary: 'Record runs of agents that another program executes, from their OpenTelemetry spans',
    description:
      'OTLP/HTTP: an ExportTraceServiceRequest as Protocol Buffers or JSON, optionally compressed with gzip; errors are a `google.rpc.Status` in the same encoding. Spans that follow the conventions for generative AI become runs of kind `External`, which cannot be canceled or replayed; other spans form the trace around them.',
    headers: Type.Object({
      'content-type': Type.Optional(Type.String({ description: '`application/x-protobuf` or `application/json`' })),
      'content-encoding': Type.Optional(Type.String({ description: '`gzip` or `identity`' })),
    }),
    responses: { 200: ExportTraceServiceResponse },
    download: 'ExportTraceServiceResponse in the encoding of the request',
    errors: [
      'validation-failed',
      'malformed-json',
      'unsupported-media-type',
      'payload-too-large',
      'run-not-allowed',
      'session-owner-required',
      'run-recording-disabled',
      'store-unavailable',
    ],
    cli: { handWritten: true },
  },
});
