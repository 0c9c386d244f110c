"""`vanilla-transformer convert-checkpoint`, from a checkout."""

from hf_vanilla_transformer.commands.convert_checkpoint import main


if __name__ == "__main__":
    main()
