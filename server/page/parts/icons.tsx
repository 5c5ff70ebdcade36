import type { ComponentChildren } from 'preact';

function Icon({ children }: { readonly children: ComponentChildren }) {
  return (
    <svg
      class="icon"
      viewBox="0 0 20 20"
      width="20"
      height="20"
      fill="none"
      stroke="currentColor"
      stroke-width="1.6"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      {children}
    </svg>
  );
}

/** The project's mark: three humps over a water line. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 24" width="32" height="24" fill="none" aria-hidden="true" focusable="false">
      <path
        d="M3 8.2C3.3 5.8 5.2 4.3 7.1 4.8 9.3 5.3 9.5 7.4 9.5 9V17M13 17a4.5 4.5 0 0 1 9 0M25 17a2.25 2.25 0 0 1 4.5 0"
        stroke="currentColor"
        stroke-width="2.6"
        stroke-linecap="round"
      />
      <path d="M2 21h28" stroke="currentColor" stroke-width="2" stroke-linecap="round" opacity=".45" />
    </svg>
  );
}

export const Cross = () => (
  <Icon>
    <path d="M5 5l10 10M15 5L5 15" />
  </Icon>
);
export const Down = () => (
  <Icon>
    <path d="M5 8l5 5 5-5" />
  </Icon>
);
export const MachineIcon = () => (
  <Icon>
    <rect x="2.5" y="3.5" width="15" height="10" rx="1.5" />
    <path d="M7 17h6M10 13.5V17" />
  </Icon>
);
export const RunIcon = () => (
  <Icon>
    <path d="M6 4.5v11l9-5.5z" />
  </Icon>
);
export const ReviewIcon = () => (
  <Icon>
    <path d="M4 5h12M4 9h7M4 13h5M11.5 14l2 2 4-4.5" />
  </Icon>
);
export const AgentIcon = () => (
  <Icon>
    <rect x="4" y="7" width="12" height="9" rx="2" />
    <path d="M10 7V3.5M7.5 11.2v.6M12.5 11.2v.6M2 11v2M18 11v2" />
  </Icon>
);
export const PeopleIcon = () => (
  <Icon>
    <circle cx="7.5" cy="7" r="3" />
    <path d="M2 16c.5-3 2.7-4.5 5.5-4.500S12.5 13 13 16M13 4.500a2.7 2.7 0 0 1 0 5M15 12.200c1.7.6 2.7 1.9 3 3.8" />
  </Icon>
);
export const Tick = () => (
  <Icon>
    <path d="M4 10.500l4 4 8-9" />
  </Icon>
);
export const Warning = () => (
  <Icon>
    <path d="M10 3.500l7.5 13h-15zM10 8.500v3.500M10 14.400v.1" />
  </Icon>
);
export const Info = () => (
  <Icon>
    <circle cx="10" cy="10" r="7.5" />
    <path d="M10 9v5M10 6.300v.1" />
  </Icon>
);
