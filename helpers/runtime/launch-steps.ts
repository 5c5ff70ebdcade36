/** Steps of launch in order; each has its own exit code, so that a row that never started says where it stopped. */
export const LAUNCH_STEPS = {
  plan: { code: 101, meaning: 'launch was given no valid plan' },
  environment: { code: 102, meaning: 'UV_USE_IO_URING is set: unset it, rings perform calls that no filter sees' },
  kernel: { code: 103, meaning: 'the kernel lacks Landlock ABI 3, seccomp or openat2: install Linux 6.2 or newer' },
  paths: { code: 104, meaning: 'a path that the row is granted is missing' },
  connect: { code: 105, meaning: 'the daemon does not listen for this row' },
  descriptors: { code: 106, meaning: 'a declared descriptor is missing or could not be placed' },
  record: { code: 107, meaning: 'the launch record could not be written' },
  limits: { code: 108, meaning: 'a limit could not be set' },
  user: { code: 109, meaning: 'the uid of the row could not be taken' },
  parent: { code: 110, meaning: 'the starter ended first' },
  landlock: { code: 111, meaning: 'Landlock could not be applied' },
  seccomp: { code: 112, meaning: 'the system call filter could not be applied' },
  exec: { code: 113, meaning: 'the program could not be started' },
} as const;

/** One step of launch. */
export type LaunchStep = keyof typeof LAUNCH_STEPS;

/** The step that an exit code stands for, or undefined for a code that is not launch's. */
export function launchStepOf(code: number): LaunchStep | undefined {
  const steps = Object.keys(LAUNCH_STEPS);
  return steps.filter(isStep).find((step) => LAUNCH_STEPS[step].code === code);
}

function isStep(name: string): name is LaunchStep {
  return name in LAUNCH_STEPS;
}
