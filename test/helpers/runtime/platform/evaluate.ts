/** One system call as a filter sees it. */
export type Call = { readonly architecture: number; readonly number: number; readonly args: readonly bigint[] };

/** Runs a classic BPF program over `struct seccomp_data` and returns its verdict (linux/bpf_common.h); throws for an instruction outside its set. */
export function evaluate(program: Buffer, { architecture, number, args }: Call): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number, 0);
  data.writeUInt32LE(architecture, 4);
  args.forEach((arg, index) => data.writeBigUInt64LE(BigInt.asUintN(64, arg), 16 + 8 * index));
  let accumulator = 0;
  for (let at = 0; ; at += 1) {
    const code = program.readUInt16LE(at * 8);
    const [ifTrue, ifFalse] = [program.readUInt8(at * 8 + 2), program.readUInt8(at * 8 + 3)];
    const operand = program.readUInt32LE(at * 8 + 4);
    if (code === 0x20) accumulator = data.readUInt32LE(operand);
    else if (code === 0x54) accumulator = (accumulator & operand) >>> 0;
    else if (code === 0x15) at += accumulator === operand ? ifTrue : ifFalse;
    else if (code === 0x35) at += accumulator >= operand ? ifTrue : ifFalse;
    else if (code === 0x06) return operand;
    else throw new Error(`instruction 0x${code.toString(16)} at ${at}`);
  }
}
